"""Roll-ups of a real server in slots of four seconds: lines for them, and waiting until they are
made."""

from server import eventually, run

SHORT = ["--rollup.slot=4s", "--rollup.granularities=1s,2s", "--rollup.quiet=1s",
         "--rollup.every=1s", "--ingest.wait_max=10ms", "--rollup.clock_difference=0"]
LONG_AGO = 1600000000  # a multiple of 4


def rollup(server, *arguments):
    return run("rollup", arguments[0], "--server", server.url, *arguments[1:])


def state(server, **params):
    answer = server.get("/api/rollups", **params)
    assert answer.status == 200, answer
    return answer.json


def until(server, good, what):
    """Polls until what /api/rollups says is good; gives it."""
    def found():
        said = state(server)
        return said if good(said) else None
    return eventually(found, lambda: f"{what}: {state(server)}")


def until_nothing_waits(server):
    return until(server, lambda said: not said["pending"], "end of what waits")


def stored(server, metric, aggregator, granularity, start=LONG_AGO, tenant="default"):
    return server.values(metric, tenant=tenant, start=start, end=start + 60, aggregator=aggregator,
                         granularity=granularity)


def lines(metric, seconds, series=1):
    """Values 0, 1, 2 ... a second from LONG_AGO on, of some series."""
    return "".join(f"{metric},h={h} value={s} {LONG_AGO + s}000000000\n"
                   for h in range(series) for s in seconds)
