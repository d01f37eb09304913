"""Fault reports as Sentry's Python client sends them: envelopes of one event each, gzipped. What
they are made of comes from a seed; ids, values, users and lines differ from one to the next.

A group is a function that fails with a message of its own, so that Granary, which groups by frames,
and bugsink, which groups by type and message, find the same groups."""

import datetime
import gzip
import json
import random
import uuid

TYPES = ["ValueError", "KeyError", "shop.errors.Refused", "django.db.utils.OperationalError",
         "TimeoutError", "requests.exceptions.ConnectionError", "AttributeError", "TypeError"]
VERBS = ["load", "save", "check", "send", "price", "merge", "parse", "apply", "render", "close",
         "open", "count", "pack", "ship", "cancel", "refund", "charge", "book", "sort", "find"]
NOUNS = ["order", "basket", "user", "invoice", "stock", "address", "coupon", "parcel", "rating",
         "picture", "price", "tax", "carrier", "return", "supplier", "shelf", "label", "batch",
         "gift", "receipt", "visit", "search", "menu", "banner", "feed"]
MODULES = ["shop.orders", "shop.billing", "shop.stock", "shop.pages"]
GROUPS = [(module, f"{verb}_{noun}") for module in MODULES for verb in VERBS for noun in NOUNS]

# The calls between: of a framework, the outermost first.
FRAMEWORK = [(f"django.{module}", f"{verb}_{module.rpartition('.')[2]}")
             for verb in VERBS[:10] for module in ["core.handlers.base", "views.generic.edit",
             "db.models.query", "db.backends.utils", "template.loader"]]
PACKAGES = {name: f"{len(name)}.{ord(name[0]) % 20}.{ord(name[-1]) % 9}" for name in [
    "django", "requests", "urllib3", "certifi", "idna", "pip", "sentry-sdk", "psycopg2", "redis",
    "celery", "kombu", "billiard", "vine", "click", "jinja2", "markupsafe", "pytz", "sqlparse"]}

# Frames and breadcrumbs that make an event of some 5 KB, and of 50 KB.
SIZES = {"5 KB": (4, 2), "50 KB": (42, 60)}


class Events:
    def __init__(self, seed, size):
        self.random = random.Random(seed)
        self.frame_count, self.breadcrumb_count = SIZES[size]
        self.sources = {}
        self.begin = datetime.datetime.now(datetime.timezone.utc)

    def number(self, below=100000):
        return self.random.randrange(below)

    def hex(self, digits):
        return f"{self.random.getrandbits(4 * digits):0{digits}x}"

    def when(self, before_s=0.0):
        time = self.begin - datetime.timedelta(seconds=before_s)
        return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def source(self, module, function):
        """Seven lines around the one that failed, which are the same every time."""
        place = f"{module}.{function}"
        if place not in self.sources:
            pick = random.Random(place)
            self.sources[place] = [
                f"        {pick.choice(NOUNS)} = self.{pick.choice(VERBS)}_{pick.choice(NOUNS)}"
                f"({pick.choice(NOUNS)}, {pick.choice(NOUNS)}={pick.randrange(100)})"
                for _ in range(7)]
        return self.sources[place]

    def frame(self, module, function, in_app):
        file = module.replace(".", "/") + ".py"
        root = "/srv/shop" if in_app else "/srv/env/lib/python3.11/site-packages"
        lines = self.source(module, function)
        return {"filename": file, "abs_path": f"{root}/{file}", "function": function,
                "module": module, "lineno": self.number(900), "in_app": in_app,
                "pre_context": lines[:3], "context_line": lines[3], "post_context": lines[4:],
                "vars": {"self": f"<{module}.Handler object at 0x7f{self.hex(10)}>",
                         "ids": [str(self.number()), str(self.number())],
                         "amount": f"Decimal('{self.number()}.{self.number(99)}')",
                         "request": f"<WSGIRequest: GET '/{function}/{self.number()}'>"}}

    def frames(self, module, function):
        """From the outermost call to the one that failed; those between are a framework's."""
        between = [self.frame(*place, False) for place in FRAMEWORK[:self.frame_count - 1]]
        return between + [self.frame(module, function, True)]

    def breadcrumb(self, number):
        return {"type": "default", "category": "query", "level": "info",
                "message": f"SELECT id, name, state FROM shop_{self.random.choice(NOUNS)} "
                           f"WHERE id = {self.number()} AND owner = '{self.hex(12)}'",
                "data": {"db.system": "postgresql", "rows": self.number(90)},
                "timestamp": self.when((self.breadcrumb_count - number) / 50)}

    def event(self, group):
        module, function = GROUPS[group]
        kind = TYPES[group % len(TYPES)]
        return {
            "level": "error",
            "exception": {"values": [{
                "mechanism": {"type": "django", "handled": False},
                "module": kind.rpartition(".")[0] or None, "type": kind.rpartition(".")[2],
                "value": f"{function} of {module} failed for {self.number()}",
                "stacktrace": {"frames": self.frames(module, function)}}]},
            "event_id": uuid.UUID(int=self.random.getrandbits(128), version=4).hex,
            "timestamp": self.when(), "transaction": f"/{module}/{function}",
            "transaction_info": {"source": "route"},
            "contexts": {"trace": {"trace_id": self.hex(32), "span_id": self.hex(16),
                                   "parent_span_id": None},
                         "runtime": {"name": "CPython", "version": "3.11.2"}},
            "request": {"method": "GET", "url": f"http://shop.example/{function}/{self.number()}",
                        "query_string": f"page={self.number(40)}",
                        "headers": {"Host": "shop.example", "Accept": "text/html",
                                    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/128.0"}},
            "user": {"id": str(self.number()), "username": f"user-{self.number()}"},
            "tags": {"shard": str(self.number(8)), "plan": self.random.choice(["free", "paid"])},
            "breadcrumbs": {"values": [self.breadcrumb(i) for i in range(self.breadcrumb_count)]},
            "modules": PACKAGES, "release": f"shop@1.4.{self.number(5)}",
            "environment": "production", "server_name": f"web-{self.number(20)}",
            "sdk": {"name": "sentry.python.django", "version": "2.75.0",
                    "packages": [{"name": "pypi:sentry-sdk", "version": "2.75.0"}],
                    "integrations": ["argv", "atexit", "django", "logging", "threading"]},
            "platform": "python"}

    def envelope(self, group):
        """An event's id, how many bytes its JSON has, and the body of its request."""
        event = self.event(group)
        payload = json.dumps(event, separators=(",", ":")).encode()
        head = json.dumps({"event_id": event["event_id"], "sent_at": self.when()})
        item = json.dumps({"type": "event", "content_type": "application/json",
                           "length": len(payload)})
        body = b"\n".join([head.encode(), item.encode(), payload, b""])
        return event["event_id"], len(payload), gzip.compress(body, 9, mtime=0)
