#!/usr/bin/env python3
"""Records what net-snmp's tools and snmpd say to each other, for tests/unit/snmp_recorded.h:

    tests/tools/record_snmp.py FOLDER >tests/unit/snmp_recorded.h

FOLDER gets snmpd's files, and one file per datagram that is of use as a fuzzer's corpus."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "e2e"))

import snmp_agent as agent  # noqa: E402

SYS_NAME = ".1.3.6.1.2.1.1.5.0"
SYS_UPTIME = ".1.3.6.1.2.1.1.3.0"


def v3(daemon, auth, priv, password=agent.AUTH_PASSWORD):
    return ["-v3", "-l", "authPriv", "-u", agent.user_of(auth, priv), "-a", auth, "-A", password,
            "-x", priv, "-X", agent.PRIV_PASSWORD, f"127.0.0.1:{daemon.port}"]


def quoted(data):
    text = data.hex()
    lines = [text[i:i + 80] for i in range(0, len(text), 80)]
    return "\n".join(f'\t"{line}"' for line in lines)


class Recorder:
    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def save(self, name, data):
        (self.folder / name).write_bytes(data)

    def pair(self, name, sent, came):
        print(f"static const char {name}_request[] =\n{quoted(sent)};")
        print(f"static const char {name}_reply[] =\n{quoted(came)};\n")
        self.save(f"{name}_request", sent)
        self.save(f"{name}_reply", came)


def record(recorder, daemon):
    to = f"127.0.0.1:{daemon.port}"

    def via(program, *arguments):
        proxy = agent.Proxy(daemon.port)
        arguments = [f"127.0.0.1:{proxy.port}" if a == to else a for a in arguments]
        subprocess.run([program, "-m", "", "-On", "-r", "0", *arguments], capture_output=True,
                       check=False, timeout=20, env={"MIBS": "", "PATH": "/usr/bin"})
        proxy.stop()
        return proxy.seen_requests, proxy.seen_replies

    def plain(name, program, *arguments):
        sent, came = via(program, *arguments)
        recorder.pair(name, sent[0], came[0])

    community = ["-c", "public", to]
    plain("v1_get", "snmpget", "-v1", *community, SYS_NAME, SYS_UPTIME)
    plain("v1_no_such_name", "snmpget", "-v1", "-Cf", *community, SYS_NAME, ".1.3.6.1.2.1.1.99.0")
    plain("v2c_get", "snmpget", "-v2c", *community, SYS_NAME, ".1.3.6.1.2.1.1.99.0")
    plain("v2c_getbulk", "snmpbulkget", "-v2c", "-Cn0", "-Cr2", *community,
          ".1.3.6.1.2.1.2.2.1.2", ".1.3.6.1.2.1.2.2.1.3", ".1.3.6.1.2.1.31.1.1.1.6")
    plain("v2c_end", "snmpgetnext", "-v2c", *community, ".2.99")
    print("static const struct {\n\tenum usm_auth auth;\n\tenum usm_priv priv;\n"
          "\tconst char *request, *reply;\n} v3_recorded[] = {")
    for auth in agent.AUTHS:
        for priv in agent.PRIVS:
            sent, came = via("snmpget", *v3(daemon, auth, priv), SYS_NAME)
            name = f"v3_{auth}_{priv}".lower().replace("-", "_")
            if priv in ("DES", "AES") and auth in ("MD5", "SHA-512"):
                recorder.save(name + "_request", sent[1])
                recorder.save(name + "_reply", came[1])
            auth_id = "USM_AUTH_" + ("SHA1" if auth == "SHA" else auth.replace("-", ""))
            priv_id = "USM_PRIV_" + {"AES": "AES128", "AES-192-C": "AES192_C",
                                     "AES-256-C": "AES256_C"}.get(priv, priv.replace("-", ""))
            print(f"\t{{{auth_id}, {priv_id},\n{quoted(sent[1])},\n{quoted(came[1])}}},")
    print("};\n")
    sent, came = via("snmpget", *v3(daemon, "SHA", "AES"), SYS_NAME)
    recorder.pair("v3_discovery", sent[0], came[0])
    sent, came = via("snmpget", *v3(daemon, "SHA", "AES", "not-the-password"), SYS_NAME)
    recorder.pair("v3_wrong_password", sent[1], came[1])
    sent, came = via("snmpget", "-Z", "5,5", "-e", "0x" + daemon.engine_id,
                     *v3(daemon, "SHA", "AES"), SYS_NAME)
    recorder.pair("v3_wrong_time", sent[0], came[0])


def main():
    folder = pathlib.Path(sys.argv[1])
    print("/* Datagrams of net-snmp 5.9.3, its tools and its snmpd, made by\n"
          " * tests/tools/record_snmp.py. In hexadecimal. */\n"
          "#ifndef SNMP_RECORDED_H\n#define SNMP_RECORDED_H\n\n#include \"wire/usm.h\"\n\n"
          "/* clang-format off */")
    daemon = agent.Snmpd(folder / "agent").start()
    try:
        record(Recorder(folder / "datagrams"), daemon)
    finally:
        daemon.stop()
    print("/* clang-format on */\n\n#endif")


if __name__ == "__main__":
    main()
