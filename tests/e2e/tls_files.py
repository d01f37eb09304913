"""Certificates for tests, by openssl(1)."""

import subprocess

EC = ("ec", "-pkeyopt", "ec_paramgen_curve:P-256")
NAMES = "DNS:localhost,IP:127.0.0.1,IP:198.51.100.1"


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def make_pair(directory, name, *key, names=NAMES):
    """CERTIFICATE, KEY; it is its own authority."""
    certificate, secret = directory / f"{name}.pem", directory / f"{name}.key"
    openssl("req", "-x509", "-newkey", *(key or EC), "-nodes", "-keyout", secret, "-out",
            certificate, "-days", "90", "-subj", f"/CN={name}", "-addext",
            f"subjectAltName={names}")
    return certificate, secret


def make_expired(directory, pair):
    """The certificate of yesterday for that key, signed by nobody else."""
    request, expired = directory / "request.pem", directory / "expired.pem"
    openssl("req", "-new", "-key", pair[1], "-out", request, "-subj", "/CN=expired")
    extensions = directory / "names"
    extensions.write_text(f"subjectAltName={NAMES}\n")
    openssl("x509", "-req", "-in", request, "-signkey", pair[1], "-out", expired, "-days", "-1",
            "-extfile", extensions)
    return expired
