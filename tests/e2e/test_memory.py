"""What the server says of its memory, against what can be worked out from what was sent, and
against what the kernel says."""

FEW, MANY, POINTS = 4000, 24000, 5
START_NS = 1767225600 * 10**9
PARTS = ["heads", "keyCache", "tagIndexes", "registry", "journalList", "groupLists",
         "samplesInFlight", "counters", "requests", "kept"]
# malloc rounds to 16 bytes and keeps 8 of its own; a head is two allocations.
MALLOC_BYTES = 2 * (8 + 15)
# Pages that threads and LMDB touch for the first time during the second load: no part of ours, and
# no function of what was sent.
FIRST_TOUCHED_BYTES = 1 << 20


def memory(server):
    return server.get("/api/stats").json["memory"]


def load(server, first, end):
    for part in range(first, end, 1000):
        lines = [f"m,host=h{host} a=1i,b=2i,c=3i,d=4i {START_NS + point * 10**10}"
                 for host in range(part, part + 1000) for point in range(POINTS)]
        assert server.write("\n".join(lines)).status == 204
    return memory(server)


def unaccounted(said):
    return said["anonymous"] - said["parts"]


def test_memory_is_counted_by_part(server):
    before = memory(server)
    few = load(server, 0, FEW)
    many = load(server, FEW, MANY)
    rows, hosts = (MANY - FEW) * POINTS, MANY - FEW

    # A row in memory is at least its time and its values, of a byte each; at most what four doubles
    # with a type each would take, twice over since room for it grows by doubling. A head beside it
    # is 120 bytes, and two allocations.
    heads = many["heads"] - few["heads"]
    assert rows * (8 + 4) < heads < rows * 2 * (8 + 4 * 9) + hosts * 250
    # 32 bytes a key, in segments that are at least a third full.
    assert 32 * MANY <= many["keyCache"] <= 3 * 32 * MANY + before["keyCache"]
    assert many["samplesInFlight"] == 0

    assert many["parts"] == sum(many[part] for part in PARTS)
    # A program's stacks, buffers and LMDB's pages are no parts, and what they take is not known
    # here; but it does not grow with the number of series. So beside twenty thousand more of them
    # all that grows is in some part, but for what malloc adds; and in no more than one, since then
    # the parts would grow by more than the kernel gave. (What the key cache has reserved, the
    # kernel has not given yet.)
    grown = unaccounted(many) - unaccounted(few)
    assert -many["keyCache"] < grown < hosts * MALLOC_BYTES + FIRST_TOUCHED_BYTES
    assert heads > hosts * MALLOC_BYTES + FIRST_TOUCHED_BYTES  # else this would show nothing
    assert many["perSeries"] == many["anonymous"] / (4 * MANY)


def test_metrics_and_stats_say_the_same(server):
    said = load(server, 0, 1000)
    assert server.metric("granary_store_head_bytes") == said["heads"] > 0
    assert server.metric("granary_ingest_cache_bytes") == said["keyCache"] > 0
    # These change while the writer works.
    assert server.metric("granary_store_registry_memory_bytes") > 0
    assert server.metric("granary_store_journal_list_bytes") > 0
