"""What roll-ups cost and what they give: a job over raw data, marks beside the ingest, a year by
the hour. No peer does it: VictoriaMetrics has roll-ups in its paid version only."""

import json
import os
import shutil
import subprocess
import time

from servers import INTERVAL_S, Granary, Server

SLOT_S = 3600
SLOTS = 4
TURNS = 7  # with and without marks: one load differs from the next by more than marks cost


class Rollups:
    def __init__(self, bench):
        self.bench = bench
        self.quick = bench.options.quick
        self.year = os.path.join(bench.work, "year")

    def tool(self, name, *arguments):
        answer = self.bench.tool(name, *arguments, stdout=subprocess.PIPE)
        return [json.loads(line) for line in answer.stdout.splitlines()]

    # ---- the job -------------------------------------------------------------------------------

    def job(self, *arguments):
        folder = os.path.join(self.bench.work, "rollups")
        found = self.tool("rollup_bench", *arguments, "--data", folder)[-1]
        shutil.rmtree(folder)
        return found

    def rolled_up(self):
        found = self.job("--hosts", 100 if self.quick else 1000)
        self.bench.note(Granary, "rolled up per CPU-s", found["per_cpu_s"])
        self.bench.note(Granary, "rolled up per CPU-s, settled", found["settled_per_cpu_s"])

    def delay(self):
        """One slot of 1 M series, all ready at once."""
        found = self.job("--hosts", 10000 if self.quick else 100000, "--slots", 1, "--step", 60)
        self.bench.note(Granary, "delay of 1 M series, s", found["pass_s"])

    # ---- marks ---------------------------------------------------------------------------------

    def ingest(self, first, rest, *options):
        """CPU seconds a sample, of series that are all known."""
        server = Granary(self.bench.work, options)
        self.bench.load(server, first)
        found = self.bench.load(server, rest)
        server.stop()
        return found["cpu_s"] / found["samples"]

    def marking(self):
        """In turns, of the present hour and those before it."""
        hosts, slots = (400, 1) if self.quick else (2000, SLOTS)
        begin_s = (int(time.time()) // SLOT_S + 1 - slots) * SLOT_S
        first = self.bench.generate(hosts, 1, begin_s)
        rest = self.bench.generate(hosts, slots * SLOT_S // INTERVAL_S - 1, begin_s + INTERVAL_S)
        for _ in range(1 if self.quick else TURNS):
            with_marks = self.ingest(first, rest)
            without = self.ingest(first, rest, "--rollup.granularities=")
            self.bench.note(Granary, "ingest with marks, ns", with_marks * 1e9)
            self.bench.note(Granary, "ingest without marks, ns", without * 1e9)
            self.bench.note(Granary, "marking, % of ingest", 100 * (with_marks / without - 1))

    # ---- a year --------------------------------------------------------------------------------

    def questions(self):
        """The first run of the tool fills the folder."""
        series = 100 if self.quick else 1000
        for found in self.tool("grain_bench", "--series", series, "--data", self.year):
            self.bench.note(Granary, "a year, " + found["question"] + ", ms", found["ms"])

    def run(self):
        try:
            for _ in range(self.bench.options.rounds):
                print("roll-ups, round by round")
                self.rolled_up()
                self.marking()
                self.questions()
            self.delay()
        finally:
            shutil.rmtree(self.year, ignore_errors=True)
            for server in list(Server.running):
                server.stop()
