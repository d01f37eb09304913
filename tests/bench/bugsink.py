"""The peer for fault reports: PyPI's bugsink, which takes the envelopes of Sentry's clients, too.
It is run as its makers run it: gunicorn takes reports and answers, snappea digests them later."""

import json
import os
import sqlite3
import subprocess
import sys

from servers import ROOT, Server

sys.path.append(os.path.join(ROOT, "tools"))
import environment  # noqa: E402

PINNED = os.path.join(ROOT, "tests", "bench", "requirements-bugsink.txt")

# All that bounds how many reports it takes or keeps is out of reach, and nobody is told of a fault.
SETTINGS = """
import os
from bugsink.settings.default import *

HERE = os.path.dirname(os.path.abspath(__file__))
UNBOUNDED = 10**9
SECRET_KEY = "of a benchmark, which serves nobody but itself on loopback"
TIME_ZONE = "UTC"
DATABASES["default"]["NAME"] = os.path.join(HERE, "db.sqlite3")
DATABASES["snappea"]["NAME"] = os.path.join(HERE, "snappea.sqlite3")
SNAPPEA = {"NUM_WORKERS": 2, "WAKEUP_CALLS_DIR": os.path.join(HERE, "wakeup")}
BUGSINK = {
    "BASE_URL": "http://127.0.0.1", "PHONEHOME": False,
    "INGEST_STORE_BASE_DIR": os.path.join(HERE, "ingestion"),
    **{f"MAX_EVENTS_PER_{scope}{span}": UNBOUNDED for scope in ("", "PROJECT_PER_")
       for span in ("5_MINUTES", "HOUR", "MONTH")},
}
"""
# As bugsink's own image has it.
GUNICORN = """
import multiprocessing
control_socket_disable = True
workers = min(multiprocessing.cpu_count(), 4)
"""
PROJECT = """
import json
from bsmain.models import AuthToken
from projects.models import Project
project = Project.objects.create(name="bench", retention_max_event_count=10**9,
                                 alert_on_new_issue=False, alert_on_regression=False)
with open("access.json", "w") as file:
    json.dump({"project": project.pk, "key": project.sentry_key.hex,
               "token": AuthToken.create_full_access().token}, file)
"""


def run(command, timeout_s):
    answer = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, timeout=timeout_s)
    return answer.returncode, answer.stdout


class Bugsink(Server):
    name = "bugsink"
    ready_path = "/health/ready"
    day_told = b"buckets"
    programs = ""  # the folder of its environment's programs, once that is there

    @classmethod
    def install(cls):
        try:
            python = environment.venv_python(os.path.join(ROOT, ".venv-bugsink"), PINNED, run)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            sys.exit(f"bench: bugsink cannot be installed: {error}")
        cls.programs = os.path.dirname(python)

    @staticmethod
    def version():
        with open(PINNED) as file:
            return next(line.split("==")[1].strip() for line in file if line[:9] == "bugsink==")

    def within(self, *command):
        """A command of its environment, in its folder."""
        path = f"PATH={self.programs}:{os.environ['PATH']}"
        return ["env", "-C", self.data, path, "DJANGO_SETTINGS_MODULE=bugsink_conf", *command]

    def start(self):
        access = os.path.join(self.data, "access.json")
        if not os.path.exists(access):
            self.set_up()
        with open(access) as file:
            self.access = json.load(file)
        super().start()

    def set_up(self):
        for name, text in (("bugsink_conf.py", SETTINGS), ("gunicorn.conf.py", GUNICORN)):
            with open(os.path.join(self.data, name), "w") as file:
                file.write(text)
        for words in (["migrate"], ["migrate", "snappea", "--database=snappea"],
                      ["shell", "-c", PROJECT]):
            status, output = run(self.within("bugsink-manage", *words), 300)
            if status != 0:
                sys.exit(f"bench: bugsink-manage {words[0]} failed: {output}")

    def command(self):
        return self.within("monofy", "gunicorn", f"--bind=127.0.0.1:{self.port}", "bugsink.wsgi",
                           "|||", "bugsink-runsnappea")

    def processes(self):
        """The first one and all that it started."""
        found = [self.process.pid]
        for pid in found:  # which grows meanwhile
            try:
                with open(f"/proc/{pid}/task/{pid}/children") as file:
                    found += map(int, file.read().split())
            except FileNotFoundError:
                pass  # it has ended
        return found

    # ---- what it is sent and asked -------------------------------------------------------------

    @property
    def project(self):
        return self.access["project"]

    @property
    def key(self):
        return self.access["key"]

    @property
    def asking(self):
        return {"Authorization": f"Bearer {self.access['token']}"}

    def day_path(self):
        """Numbers of reports in the last 24 hours, by the hour: it sums no more."""
        return f"/api/canonical/0/projects/{self.project}/event-counts/"

    def report_path(self, id_):
        return f"/api/canonical/0/events/lookup/?project={self.project}&event_id={id_}"

    def number_of(self, database, question):
        connection = sqlite3.connect(f"file:{self.data}/{database}?mode=ro", uri=True, timeout=60)
        try:
            return connection.execute(question).fetchone()[0]
        finally:
            connection.close()

    def reports(self):
        """Those that are digested, which then are in its database."""
        return self.number_of("db.sqlite3", "SELECT count(*) FROM events_event")

    def groups(self):
        return self.number_of("db.sqlite3", "SELECT count(*) FROM issues_issue")

    def report_bytes(self):
        """Of the pages in use. What it had not digested would lie in files; there is none of it."""
        name = "db.sqlite3"
        pages = (self.number_of(name, "PRAGMA page_count") -
                 self.number_of(name, "PRAGMA freelist_count"))
        return pages * self.number_of(name, "PRAGMA page_size")
