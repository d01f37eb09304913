"""Python's ssl and openssl(1) against tests/tools/tls_echo.c: versions, ciphers, sessions that are
resumed, certificates that change. What single bytes do is in tests/unit/loop_tls.c."""

import contextlib
import signal
import socket
import ssl
import subprocess

import pytest

from raw_http import build_dir
from server import PATIENCE_S

CIPHERS = {"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384",
           "ECDHE-ECDSA-CHACHA20-POLY1305"}
SUITES = {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}


def make_pair(directory, name, *key):
    """CERTIFICATE, KEY of localhost."""
    certificate, secret = directory / f"{name}.pem", directory / f"{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", *key, "-nodes", "-keyout", secret, "-out",
                    certificate, "-days", "9", "-subj", f"/CN={name}",
                    "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
    return certificate, secret


class Echo:
    def __init__(self, directory):
        self.pair = make_pair(directory, "first", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")
        program = build_dir() / "tests" / "tools" / "tls_echo"
        self.process = subprocess.Popen([program, *self.pair], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "certificate read \n"
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])

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
    server.process.send_signal(signal.SIGTERM)
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
        echo.process.send_signal(signal.SIGTERM)
        with pytest.raises(ssl.SSLError, match="unexpected eof"):
            client.recv(1)
