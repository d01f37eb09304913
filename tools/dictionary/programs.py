"""Programs that fail as programs do, with Sentry's client of Python. `programs.py NAME` runs one of
them; `programs.py` runs all, each in a process of its own. The environment has the DSN. Each event
is of other values, as those of a real day are."""

import asyncio
import json
import os
import random
import string
import subprocess
import sys

import sentry_sdk

EVENTS = 40
RNG = random.Random(8470)
WORDS = ("order basket invoice customer parcel voucher address payment stock supplier refund "
         "newsletter session profile search price delivery account").split()


def word():
    return RNG.choice(WORDS)


def token(length=12):
    return "".join(RNG.choices(string.ascii_lowercase + string.digits, k=length))


def describe():
    """What programs say of themselves and of who uses them."""
    scope = sentry_sdk.get_isolation_scope()
    scope.set_user({"id": str(RNG.randrange(10**6)), "username": word() + token(3),
                    "email": f"{token(6)}@{word()}.example",
                    "ip_address": f"10.{RNG.randrange(256)}.{RNG.randrange(256)}.7"})
    scope.set_tag(word(), token(5))
    scope.set_context(word(), {word(): token(), word(): RNG.random()})
    for _ in range(RNG.randrange(12)):
        sentry_sdk.add_breadcrumb(
            category=RNG.choice(["query", "httplib", "auth", "redis", "console"]),
            type=RNG.choice(["default", "http", "query"]), level=RNG.choice(["info", "warning"]),
            message=f"SELECT {word()}.id, {word()}.name FROM {word()} WHERE {word()}_id = "
                    f"{RNG.randrange(10**5)}")


def fails(depth=None):
    """Some exception, from some depth."""
    value = RNG.randrange(10**6)
    depth = RNG.randrange(4) if depth is None else depth
    if depth:
        return fails(depth - 1)
    kind = value % 8
    if kind == 0:
        return {}[token()]
    if kind == 1:
        return int(token())
    if kind == 2:
        return None.attribute
    if kind == 3:
        return 1 / (value - value)
    if kind == 4:
        return json.loads(token())
    if kind == 5:
        return open(f"/var/lib/{word()}/{token()}", encoding="utf-8")
    if kind == 6:
        return [word()][value]
    try:
        return float(token())
    except ValueError as error:
        raise RuntimeError(f"cannot take {word()} {value}") from error


def plain():
    for _ in range(EVENTS):
        describe()
        try:
            fails()
        except Exception as error:  # any of them is what a program meets
            sentry_sdk.capture_exception(error)
        sentry_sdk.capture_message(f"{word()} {RNG.randrange(10**4)} is late", level="warning")


def aio():
    async def one():
        await asyncio.sleep(0)
        fails()

    async def all_of_them():
        for _ in range(EVENTS):
            describe()
            try:
                await asyncio.gather(one(), one())
            except Exception as error:
                sentry_sdk.capture_exception(error)

    asyncio.run(all_of_them())


def django():
    from django import urls
    from django.conf import settings
    settings.configure(DEBUG=False, ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY="none",
                       TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
                       MIDDLEWARE=["django.middleware.security.SecurityMiddleware",
                                   "django.middleware.common.CommonMiddleware",
                                   "django.middleware.csrf.CsrfViewMiddleware"],
                       DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3",
                                              "NAME": ":memory:"}})
    import django as framework
    framework.setup()
    from django.db import connection
    from django.http import HttpResponse
    from django.template import engines
    from django.test import Client

    def page(_request, **_found):
        describe()
        return HttpResponse(str(fails()))

    def query(_request, **_found):
        describe()
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT name FROM {word()} WHERE id = %s", [RNG.randrange(1000)])

    def template(_request, **_found):
        describe()
        text = "<p>{% for x in " + word() + " %}{{ x|add:" + token() + "}}{% endfor %}"
        return HttpResponse(engines["django"].from_string(text).render({}))

    # Django looks for the routes in a module.
    globals()["urlpatterns"] = [
        urls.path("shop/<name>/<int:number>/", page), urls.path("data/<name>/", query),
        urls.path("page/<name>/", template)]
    client = Client(raise_request_exception=False)
    for _ in range(EVENTS):
        agent = {"HTTP_USER_AGENT": "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 "
                                    "Firefox/128.0", "HTTP_ACCEPT_LANGUAGE": "en-US,en;q=0.5"}
        client.get(f"/shop/{word()}/{RNG.randrange(1000)}/?page={RNG.randrange(9)}", **agent)
        client.post(f"/shop/{word()}/{RNG.randrange(1000)}/", {word(): token()}, **agent)
        client.get(f"/data/{word()}/", **agent)
        client.get(f"/page/{word()}/", **agent)


def flask():
    from flask import Flask
    app = Flask("shop")

    @app.route("/<name>/<int:number>", methods=["GET", "POST"])
    def view(name, number):
        describe()
        return f"{name}{number}{fails()}"

    client = app.test_client()
    for _ in range(EVENTS):
        client.get(f"/{word()}/{RNG.randrange(1000)}?q={token()}")
        client.post(f"/{word()}/{RNG.randrange(1000)}", json={word(): token()})


def fastapi():
    from fastapi import FastAPI
    from fastapi.testclient import TestClient
    app = FastAPI()

    @app.get("/{name}/{number}")
    async def view(name: str, number: int):
        describe()
        return {name: number, "of": fails()}

    client = TestClient(app, raise_server_exceptions=False)
    for _ in range(EVENTS):
        client.get(f"/{word()}/{RNG.randrange(1000)}", params={"q": token()})


def celery():
    from celery import Celery
    app = Celery("shop", broker="memory://")
    app.conf.task_always_eager = True

    @app.task(name="shop.tasks.send")
    def send(number):
        describe()
        return number, fails()

    for _ in range(EVENTS):
        send.apply(args=[RNG.randrange(1000)])


def libraries():
    import requests
    import sqlalchemy
    engine = sqlalchemy.create_engine("sqlite://")
    for _ in range(EVENTS):
        describe()
        try:
            with engine.connect() as connection:
                connection.execute(sqlalchemy.text(f"SELECT id FROM {word()}s WHERE name = :n"),
                                   {"n": token()})
        except Exception as error:
            sentry_sdk.capture_exception(error)
        try:
            requests.get(f"http://127.0.0.1:9/{word()}?q={token()}", timeout=1)
        except Exception as error:
            sentry_sdk.capture_exception(error)


PROGRAMS = {program.__name__: program
            for program in (plain, aio, django, flask, fastapi, celery, libraries)}


def main(name):
    sentry_sdk.init(dsn=os.environ["SENTRY_DSN"], release=f"{word()}@1.{RNG.randrange(40)}.0",
                    environment=RNG.choice(["production", "staging"]), server_name="web-3",
                    send_default_pii=True)
    PROGRAMS[name]()
    sentry_sdk.flush(60)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        for each in PROGRAMS:
            subprocess.run([sys.executable, __file__, each], check=True)
