"""Python's ssl and openssl(1) against tests/tools/tls_echo.c: versions, ciphers, sessions that are
resumed, certificates that change; and the server itself with its clients, over TLS. What single
bytes do is in tests/unit/loop_tls.c."""

import contextlib
import gzip
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
import warnings

import influxdb
import influxdb_client
import pytest
from influxdb_client.client.write_api import SYNCHRONOUS

import tls_files
from followed import Follower, Log, await_log
from raw_http import build_dir
from remote_poller import RemotePoller, wait_for
from server import PATIENCE_S, eventually, free_port, long_run, run, running
from tls_files import make_pair

CIPHERS = {"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384",
           "ECDHE-ECDSA-CHACHA20-POLY1305"}
SUITES = {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}


class Echo:
    def __init__(self, directory):
        self.pair = make_pair(directory, "first", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")
        program = build_dir() / "tests" / "tools" / "tls_echo"
        self.ending = False
        self.process = subprocess.Popen([program, *self.pair], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "certificate read \n"
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])

    def end(self):
        """Once: a second signal may come when nobody catches it any more."""
        if not self.ending:
            self.process.send_signal(signal.SIGTERM)
        self.ending = True

    def reload(self):
        """What it says then."""
        self.process.send_signal(signal.SIGHUP)
        return self.process.stdout.readline()

    def replace(self, pair):
        for old, new in zip(self.pair, pair):
            old.write_bytes(new.read_bytes())

    def context(self, certificate=None, version=None):
        context = ssl.create_default_context(cafile=certificate or self.pair[0])
        if version:
            context.minimum_version = context.maximum_version = version
        return context

    def connect(self, context, session=None):
        plain = socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)
        try:
            return context.wrap_socket(plain, server_hostname="localhost", session=session)
        except BaseException:
            plain.close()
            raise


@pytest.fixture
def echo(tmp_path):
    server = Echo(tmp_path)
    yield server
    server.end()
    assert server.process.wait(PATIENCE_S) == 0
    server.process.stdout.close()


def say(client, data):
    """Sends it piece by piece, and takes as much back: Python's sockets of TLS are for one thread
    at a time."""
    got = bytearray()
    for start in range(0, len(data), 1 << 16):
        client.sendall(data[start:start + (1 << 16)])
        while len(got) < min(start + (1 << 16), len(data)):
            piece = client.recv(1 << 16)
            assert piece
            got += piece
    return bytes(got)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_megabytes_go_and_come(echo, version):
    context = echo.context(version=version)
    context.set_alpn_protocols(["h2", "http/1.1"])
    data = bytes(i * i % 251 for i in range(1 << 20)) * 5
    with echo.connect(context) as client:
        assert client.selected_alpn_protocol() == "http/1.1"
        assert say(client, data) == data
        # Both ends are said within TLS: this raises where one is missing.
        client.unwrap().close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_versions_are_refused(echo):
    for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        context = echo.context()
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = version
        with pytest.raises(ssl.SSLError, match="alert protocol version"):
            echo.connect(context)


def test_only_strong_ciphers_are_spoken(echo):
    asked = ["openssl", "ciphers", "-s", "-tls1_2", "ALL:COMPLEMENTOFALL:@SECLEVEL=0"]
    listed = subprocess.run(asked, check=True, capture_output=True,
                            text=True).stdout.strip().split(":")
    assert len(listed) > 20
    taken = set()
    for cipher in listed:
        context = echo.context(version=ssl.TLSVersion.TLSv1_2)
        context.set_ciphers(f"{cipher}:@SECLEVEL=0")
        with contextlib.suppress(ssl.SSLError), echo.connect(context) as client:
            taken.add(client.cipher()[0])
    assert taken == CIPHERS
    with echo.connect(echo.context(version=ssl.TLSVersion.TLSv1_3)) as client:
        assert client.cipher()[0] in SUITES


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_sessions_are_resumed_also_when_the_certificate_has_changed(echo, tmp_path, version):
    context = echo.context(version=version)
    with echo.connect(context) as client:
        assert not client.session_reused
        assert say(client, b"hello") == b"hello"  # tickets of 1.3 come with the first bytes
        session = client.session
    assert session.has_ticket
    with echo.connect(context, session) as client:
        assert client.session_reused
        assert say(client, b"again") == b"again"
    echo.replace(make_pair(tmp_path, "second", "rsa:2048"))
    assert echo.reload() == "certificate read \n"
    with echo.connect(context, session) as client:
        assert client.session_reused
        assert say(client, b"still") == b"still"


def test_certificates_change_and_no_connection_breaks(echo, tmp_path):
    first = echo.context()
    with echo.connect(first) as client:
        assert say(client, b"one") == b"one"
        second = make_pair(tmp_path, "second", "rsa:2048")
        echo.replace(second)
        assert echo.reload() == "certificate read \n"
        assert say(client, b"two") == b"two"
        with echo.connect(echo.context(second[0])) as other:
            assert other.getpeercert()["subject"] == ((("commonName", "second"),),)
            assert say(other, b"three") == b"three"
        # A pair that does not fit leaves the one that is used.
        third = make_pair(tmp_path, "third", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")
        echo.pair[0].write_bytes(third[0].read_bytes())
        said = echo.reload()
        assert said.startswith("refused: ") and "first.key: the key does not fit" in said
        with echo.connect(echo.context(second[0])) as other:
            assert say(other, b"four") == b"four"
        assert say(client, b"five") == b"five"


def test_a_client_that_is_cut_off_sees_it(echo):
    """Where the server ends without a word, clients that look can tell."""
    context = echo.context()
    context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
    plain = socket.create_connection(("127.0.0.1", echo.port), PATIENCE_S)
    with context.wrap_socket(plain, server_hostname="localhost",
                             suppress_ragged_eofs=False) as client:
        assert say(client, b"hello") == b"hello"
        echo.end()
        with pytest.raises(ssl.SSLError, match="unexpected eof"):
            client.recv(1)


# ---- The server itself


@pytest.fixture
def pair(tmp_path):
    return tls_files.make_pair(tmp_path, "server")


@pytest.fixture
def secure(make_server, pair):
    """A server that speaks TLS at `tls_port`, too, and has a credential."""
    server = make_server()
    server.tls_port = free_port()
    server.options = [
        "--listen", f"127.0.0.1:{server.port},tls:127.0.0.1:{server.tls_port}",
        "--tls.certificate_file", pair[0], "--tls.key_file", pair[1], "--http.header_timeout", "5s"]
    server.secure_url = f"https://localhost:{server.tls_port}"
    with running(server):
        server.close_to_others()
        yield server


def token_of(server, roles, tenants="*"):
    """The file of a new token that may do only that."""
    name = roles.replace(":", "-").replace(",", "-")
    made = server.request("POST", "/api/credentials", name=name, roles=roles, tenants=tenants)
    path = server.folder / f"{roles}.token"
    path.write_text(made.json["token"] + "\n")
    path.chmod(0o600)
    return path


def https(server, pair):
    context = ssl.create_default_context(cafile=pair[0])
    return http.client.HTTPSConnection("localhost", server.tls_port, timeout=PATIENCE_S,
                                       context=context)


def test_it_says_where_it_is(secure):
    assert (f"is ready at http://127.0.0.1:{secure.port}/, https://127.0.0.1:{secure.tls_port}/ "
            "with the data in") in secure.log_text()


def test_openssl_agrees_with_it(secure, pair):
    said = subprocess.run(["openssl", "s_client", "-connect", f"localhost:{secure.tls_port}",
                           "-CAfile", pair[0], "-verify_return_error", "-verify_hostname",
                           "localhost", "-alpn", "h2,http/1.1", "-ign_eof"],
                          input=b"GET /-/ready HTTP/1.1\r\nHost: localhost\r\n"
                                b"Connection: close\r\n\r\n",
                          capture_output=True, timeout=PATIENCE_S, check=True).stdout
    assert b"ALPN protocol: http/1.1" in said and b"Verify return code: 0 (ok)" in said
    assert b"HTTP/1.1 200 OK\r\n" in said and b"\nready" in said


def test_bodies_and_answers_of_megabytes(secure, pair):
    """Both ways, on one connection, compressed and chunked."""
    head = {"Authorization": f"Bearer {secure.token}"}
    start = int(time.time()) - 100000
    lines = [f"m,a={k % 5} v={k} {start + k}" for k in range(50000)]
    connection = https(secure, pair)
    plain, packed = ("\n".join(lines[at:at + 25000]).encode() for at in (0, 25000))
    for body in (plain, gzip.compress(packed)):
        coding = {"Content-Encoding": "gzip"} if body[:2] == b"\x1f\x8b" else {}
        connection.request("POST", "/write?precision=s", body, {**head, **coding})
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (204, b"")
    connection.request("GET", f"/api/query?metricName=m_v&start={start - 1}", headers=head)
    answer = connection.getresponse()
    assert answer.status == 200
    found = {int(value) for series in json.loads(answer.read())
             for value in series["values"].values()}
    assert found == set(range(50000))
    connection.close()


def test_clients_of_influxdb(secure, pair):
    """Each with a token that may only write; what came is read by another way."""
    token = token_of(secure, "write", "acme").read_text().strip()
    at = 1700000000
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = influxdb.InfluxDBClient("localhost", secure.tls_port, "any", token, "acme",
                                        ssl=True, verify_ssl=str(pair[0]))
        first.create_database("acme")
        first.write_points([{"measurement": "one", "time": at * 10**9, "fields": {"v": 1.0}}])
        first.close()
    with influxdb_client.InfluxDBClient(secure.secure_url, token, org="acme",
                                        ssl_ca_cert=str(pair[0])) as second:
        second.write_api(write_options=SYNCHRONOUS).write(
            "acme", record=f"two v=2 {at * 10**9}")
    assert list(secure.values("one_v", tenant="acme").values()) == [1.0]
    assert list(secure.values("two_v", tenant="acme").values()) == [2.0]


def test_commands_and_their_sentences(secure, pair, tmp_path):
    shown = ["--token-file", token_of(secure, "admin")]
    ca = ["--ca", pair[0]]
    there = ["--server", secure.secure_url, *shown]
    assert run("put", "m", "7", "a=b", *there, *ca).returncode == 0
    assert run("query", "m", *there, env={**os.environ, "GRANARY_CA_FILE": str(pair[0])}
               ).returncode == 0
    other = tls_files.make_pair(tmp_path, "other")
    plain, tls = secure.port, secure.tls_port
    for url, trusted, sentence in (
            (f"https://127.0.0.2:{tls}", pair[0], ": Failed to connect"),
            (f"https://localhost:{tls}", other[0], f"authority that {other[0]} trusts"),
            (f"https://localhost:{tls}", None, "that this system trusts; --ca"),
            (f"https://localhost:{tls}", "/nowhere", "/nowhere: it holds no certificate that"),
            (f"https://localhost:{tls}", pair[1], f"{pair[1]}: it holds no certificate that"),
            (f"https://localhost:{plain}", pair[0], "does not speak TLS, perhaps http://"),
            (f"http://localhost:{tls}", pair[0], "does not speak plain HTTP, perhaps https://")):
        trusting = ["--ca", trusted] if trusted else []
        said = run("token", "list", "--server", url, *shown, *trusting)
        assert said.returncode == 1
        assert url in said.stderr and sentence in said.stderr, said.stderr
        assert len(said.stderr.splitlines()) == 1


@pytest.mark.parametrize("which, sentence", [
    ("name", "is for another name than this address"), ("expired", "has expired")])
def test_a_certificate_that_commands_do_not_trust(make_server, tmp_path, pair, which, sentence):
    server = make_server()
    port = free_port()
    if which == "name":
        certificate, key = tls_files.make_pair(tmp_path, "elsewhere", names="DNS:elsewhere.example")
    else:
        certificate, key = tls_files.make_expired(tmp_path, pair), pair[1]
    server.options = ["--listen", f"127.0.0.1:{server.port},tls:127.0.0.1:{port}",
                      "--tls.certificate_file", certificate, "--tls.key_file", key]
    with running(server):
        said = run("stats", "--server", f"https://localhost:{port}", "--ca", certificate)
        assert said.returncode == 1
        assert f"https://localhost:{port}: the server's certificate {sentence}" in said.stderr
        if which == "expired":
            assert f"{certificate}" in server.log_text() and "expired" in server.log_text()


@pytest.mark.parametrize("change, sentence", [
    (lambda pair, other: pair[1].write_bytes(other[1].read_bytes()), "the key does not fit"),
    (lambda pair, other: pair[1].chmod(0o644), "server.key"),
    (lambda pair, other: pair[0].unlink(), "server.pem"),
    (lambda pair, other: pair[0].write_bytes(b""), "server.pem"),
    (lambda pair, other: pair[1].write_text("changeme"), "server.key")])
def test_a_pair_that_cannot_be_used(tmp_path, pair, change, sentence):
    change(pair, tls_files.make_pair(tmp_path, "other"))
    said = run("serve", "--listen", "tls:127.0.0.1:0", "--data", tmp_path / "d",
               "--tls.certificate_file", pair[0], "--tls.key_file", pair[1])
    assert said.returncode == 2 and sentence in said.stderr
    assert "--tls." in said.stderr
    assert not (tmp_path / "d").exists()


def test_a_poller_and_an_agent_deliver(secure, pair, tmp_path):
    """Each with a token that may do only that."""
    ca = ["--ca", pair[0]]
    log = Log(tmp_path / "logs" / "app.log")
    log.append()
    follower = Follower(tmp_path / "follower", secure.secure_url, {"app": log.path},
                        options=["--token-file", token_of(secure, "write,read"), *ca])
    poller = RemotePoller(tmp_path / "poller", secure.secure_url, options=[
        "--token-file", token_of(secure, "poll:site", "snmp"), *ca])
    try:
        follower.start()
        await_log(secure, log, follower)
        poller.start()
        wait_for(lambda: [one["name"] for one in secure.get("/api/pollers").json] ==
                 ["site"])
    finally:
        follower.kill()
        poller.kill()


def test_the_agent_within_a_server_of_tls_alone(make_server, tmp_path, pair):
    """It delivers by the socket in the data directory."""
    log = Log(tmp_path / "logs" / "app.log")
    log.append()
    server = make_server(config=f"adaptors:\n  app: {{tail: {log.path}, datatype: app}}\n")
    plain = server.port
    server.options = ["--listen", f"tls:127.0.0.1:{plain}", "--tls.certificate_file", pair[0],
                      "--tls.key_file", pair[1]]
    context = ssl.create_default_context(cafile=pair[0])
    server.new_connection = lambda: http.client.HTTPSConnection(
        "localhost", plain, timeout=PATIENCE_S, context=context)
    with running(server):
        await_log(server, log)


# What testssl.sh says against every server with a certificate of a test.
ACCEPTED = {
    "HSTS",  # whether browsers may ever come without TLS is for who has the name
    "BREACH",  # no answer has a secret beside what its asker has chosen
    "cert_revocation", "DNS_CAArecord", "cert_chain_of_trust",
}


if long_run():  # two minutes
    @pytest.mark.skipif(not shutil.which("testssl"), reason="testssl.sh is not installed")
    def test_testssl_finds_nothing(secure, pair, tmp_path):
        """Nothing that costs a grade: versions, ciphers, forward secrecy, known attacks."""
        found = tmp_path / "found.json"
        subprocess.run(["testssl", "--quiet", "--color", "0", "-p", "-s", "-f", "-P", "-S", "-h",
                        "-U", "--add-ca", pair[0], "--jsonfile", found,
                        f"localhost:{secure.tls_port}"],
                       capture_output=True, timeout=20 * PATIENCE_S, check=False)
        rows = json.loads(found.read_text())
        assert {"TLS1_2", "TLS1_3", "heartbleed", "ROBOT", "LUCKY13"} <= {row["id"] for row in rows}
        bad = [row for row in rows if row["severity"] in ("LOW", "MEDIUM", "HIGH", "CRITICAL")
               and row["id"].split(" ")[0] not in ACCEPTED]
        assert not bad, bad


# ---- Certificates that change


class Load:
    """Clients that ask all the time, each on a connection that it keeps; and one that takes a new
    one for each question."""

    def __init__(self, server, certificates, clients=4):
        self.server, self.over, self.errors, self.counts = server, threading.Event(), [], []
        self.context = ssl.create_default_context()
        for certificate in certificates:
            self.context.load_verify_locations(certificate)
        self.threads = [threading.Thread(target=self.ask, args=(kept,))
                        for kept in [True] * clients + [False]]

    def connect(self):
        return http.client.HTTPSConnection("localhost", self.server.tls_port, timeout=PATIENCE_S,
                                           context=self.context)

    def ask(self, kept):
        connection, count = self.connect(), 0
        try:
            while not self.over.is_set():
                connection.request("GET", "/-/ready")
                answer = connection.getresponse()
                assert (answer.status, answer.read()) == (200, b"ready\n")
                assert kept or connection.sock is not None
                count += 1
                if not kept:
                    connection.close()
        except Exception as error:
            self.errors.append(error)
        self.counts.append(count)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()
        assert not self.errors, self.errors
        assert min(self.counts) > 0


def shown_by(server):
    """The certificate that a new client sees, in DER."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", server.tls_port), PATIENCE_S) as plain, \
            context.wrap_socket(plain) as client:
        return client.getpeercert(True)


def der(certificate):
    return ssl.PEM_cert_to_DER_cert(certificate.read_text())


def reload(server):
    """What the log says of it."""
    seen = len(server.log_text())
    server.process.send_signal(signal.SIGHUP)
    return eventually(lambda: [line for line in server.log_text()[seen:].splitlines(True)
                               if "reload: done" in line or "reload: nothing" in line
                               if line.endswith("\n")])[0]


def test_a_reload_shows_the_new_certificate_and_breaks_no_connection(secure, pair, tmp_path):
    pairs = [tls_files.make_pair(tmp_path, f"pair{n}", *(("rsa:2048",) if n == 1 else ()))
             for n in range(3)]
    first = der(pair[0])
    with Load(secure, [pair[0], *(one[0] for one in pairs)]):
        assert shown_by(secure) == first
        for certificate, key in pairs:
            pair[0].write_bytes(certificate.read_bytes())
            # Half of a pair is none: the old one stays, and the next reload is good.
            said = reload(secure)
            assert "nothing is changed" in said and f"{pair[1]}: the key does not fit" in said
            assert shown_by(secure) == first
            pair[1].write_bytes(key.read_bytes())
            assert "reload: done" in reload(secure)
            first = der(certificate)
            assert shown_by(secure) == first


def test_a_reload_may_name_other_files(make_server, pair, tmp_path):
    other = tls_files.make_pair(tmp_path, "other")
    server = make_server()
    server.tls_port = free_port()
    text = "tls:\n  certificate_file: {}\n  key_file: {}\n"
    server.configure(text.format(*pair))
    server.options = ["--listen", f"127.0.0.1:{server.port},tls:127.0.0.1:{server.tls_port}"]
    with running(server):
        assert shown_by(server) == der(pair[0])
        server.configure(text.format(*other))
        assert "reload: done\n" in reload(server)
        assert shown_by(server) == der(other[0])
        server.configure("tls:\n  certificate_file: /nowhere\n  key_file: /nowhere\n")
        said = reload(server)
        assert "nothing is changed" in said and "granary.yml:2: tls.certificate_file" in said
        assert shown_by(server) == der(other[0])
