"""A program that fails, with the client of Sentry that this interpreter has, 1.9 or 2: run by
test_sentry_clients.py. Sends an exception with all that goes with one, a message with two files,
with version 2 a transaction, and a session; then prints the requests that left, as they left: path
of the client's choosing, headers and body."""

import base64
import json
import sys

dsn, *missing = sys.argv[1:]
for name in missing:
    sys.modules[name] = None  # as if it were not installed

import sentry_sdk  # noqa: E402
from sentry_sdk.transport import HttpTransport  # noqa: E402

sent = []
real = HttpTransport._send_request


def tee(self, body, headers, *arguments, **named):
    sent.append({"headers": dict(headers), "body": base64.b64encode(body).decode()})
    return real(self, body, headers, *arguments, **named)


HttpTransport._send_request = tee


def charge(order, shop_password_2):
    amount = order["amount"]
    raise KeyError(f"no account for {amount}")


class Failing(Exception):
    pass


sentry_sdk.init(dsn, release="shop@1.4.2", environment="staging", server_name="web-1",
                traces_sample_rate=1.0, max_breadcrumbs=10, debug=False)
sentry_sdk.set_tag("colour", "blå")
sentry_sdk.set_user({"id": "4711", "username": "anna"})
sentry_sdk.add_breadcrumb(category="query", message="SELECT name FROM customer", level="info")
sentry_sdk.add_breadcrumb(category="ui", message="clicked", data={"button": 3})
try:
    try:
        charge({"amount": 12.5, "lines": [1, 2, 3]}, "-".join(["hunter2", "pw"]))
    except KeyError as error:
        raise Failing("the order is lost") from error
except Failing as error:
    sentry_sdk.capture_exception(error)
with sentry_sdk.push_scope() as scope:
    scope.add_attachment(bytes=bytes(range(256)) * 400, filename="core dump.bin")
    scope.add_attachment(bytes="größe\n".encode(), filename="größe.txt", content_type="text/plain")
    sentry_sdk.capture_message("the disk is nearly full", level="warning")
with sentry_sdk.start_transaction(op="task", name="nightly"):
    pass
sentry_sdk.Hub.current.start_session()
sentry_sdk.Hub.current.end_session()
sentry_sdk.flush(timeout=60)
sentry_sdk.Hub.current.client.close(timeout=60)
print(json.dumps({"version": sentry_sdk.VERSION, "sent": sent}))
