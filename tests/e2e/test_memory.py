"""What the server says of its memory, against what can be worked out from what was sent, and
against what the kernel says."""

HOSTS, POINTS = 4000, 5
START_NS = 1767225600 * 10**9


def memory(server):
    return server.get("/api/stats").json["memory"]


def test_memory_is_counted_by_part(server):
    before = memory(server)
    for part in range(0, HOSTS, 1000):
        lines = [f"m,host=h{host} a=1i,b=2i,c=3i,d=4i {START_NS + point * 10**10}"
                 for host in range(part, part + 1000) for point in range(POINTS)]
        assert server.write("\n".join(lines)).status == 204
    after = memory(server)
    series, rows = 4 * HOSTS, HOSTS * POINTS

    # A row in memory is at least its time and its values, of a byte each; at most what four doubles
    # with a type each would take, twice over since room for it grows by doubling. A head beside it
    # is some 140 bytes, and two allocations.
    heads = after["heads"] - before["heads"]
    assert rows * (8 + 4) < heads < rows * 2 * (8 + 4 * 9) + HOSTS * 250
    # 32 bytes a key, in segments that are at least a third full.
    assert 32 * HOSTS <= after["keyCache"] <= 3 * 32 * HOSTS + before["keyCache"]
    assert after["samplesInFlight"] == 0

    # What is said to be there is there: no part is counted twice, and none of weight is left out.
    assert 0.4 * after["anonymous"] < after["parts"] < after["anonymous"] * 1.1
    assert after["perSeries"] == after["anonymous"] / series
    assert server.metric("granary_store_head_bytes") == after["heads"]
    assert server.metric("granary_store_registry_memory_bytes") > 0
    assert server.metric("granary_store_journal_list_bytes") > 0
