"""A RabbitMQ of the test's own: its folders, its name, its port mapper, all on loopback."""

import base64
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess

import amqp
import pytest

from server import eventually, free_port

# Debian's own start script runs it as another user.
SERVER = pathlib.Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
CONTROL = SERVER.with_name("rabbitmqctl")
USER, PASSWORD, VHOST = "reporter", "rabbit's secret", "oopses/all"


def definitions():
    """What it has when it is made: one virtual host, and one user."""
    salt = b"salt"  # 4 bytes, then the SHA-256 of them and the password
    digest = salt + hashlib.sha256(salt + PASSWORD.encode()).digest()
    return {"users": [{"name": USER, "password_hash": base64.b64encode(digest).decode(),
                       "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": ""}],
            "vhosts": [{"name": VHOST}],
            "permissions": [{"user": USER, "vhost": VHOST, "configure": ".*", "write": ".*",
                             "read": ".*"}]}


class Rabbit:
    def __init__(self, folder):
        if not SERVER.exists() or not shutil.which("epmd"):
            pytest.skip("rabbitmq-server (package rabbitmq-server) is not installed")
        self.folder, self.process, self.names = folder, None, 0
        self.port, names_port = free_port(), free_port()
        folder.mkdir()
        (folder / "definitions.json").write_text(json.dumps(definitions()))
        (folder / "rabbitmq.conf").write_text(f"load_definitions = {folder}/definitions.json\n"
                                              f"listeners.tcp.default = 127.0.0.1:{self.port}\n")
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8",
            "RABBITMQ_NODENAME": f"granary-{self.port}@localhost",
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_CONFIG_FILE": f"{folder}/rabbitmq",
            "RABBITMQ_ADVANCED_CONFIG_FILE": f"{folder}/none",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{folder}/plugins",
            "RABBITMQ_MNESIA_BASE": f"{folder}/mnesia", "RABBITMQ_LOG_BASE": f"{folder}/logs",
            "RABBITMQ_PID_FILE": f"{folder}/pid", "RABBITMQ_DIST_PORT": str(free_port()),
            "ERL_EPMD_PORT": str(names_port), "ERL_EPMD_ADDRESS": "127.0.0.1"}
        # Else the first of Erlang starts one that stays.
        self.port_mapper = subprocess.Popen(["epmd", "-port", str(names_port)],
                                            env=self.environment, stdin=subprocess.DEVNULL)

    def start(self):
        with open(self.folder / "log", "a") as log:
            self.process = subprocess.Popen([SERVER], env=self.environment, cwd=self.folder,
                                            stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                            start_new_session=True)
        eventually(self.answers, lambda: (self.folder / "log").read_text()[-4000:])

    def answers(self):
        assert self.process.poll() is None, (self.folder / "log").read_text()[-4000:]
        with contextlib.suppress(OSError, amqp.AMQPError):
            self.connect().close()
            return True

    def connect(self):
        connection = self.factory()
        connection.connect()
        return connection

    def factory(self):
        """As oops_amqp wants it; publishing waits until the broker has the message."""
        return amqp.Connection(host=f"127.0.0.1:{self.port}", userid=USER, password=PASSWORD,
                               virtual_host=VHOST, confirm_publish=True, connect_timeout=20,
                               read_timeout=60, write_timeout=60)

    def send(self, number):
        """To the server, its scripts and their helpers."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def stop_still(self):
        self.send(signal.SIGSTOP)

    def go_on(self):
        self.send(signal.SIGCONT)

    def kill(self):
        self.send(signal.SIGKILL)
        self.process.wait()

    def end(self):
        if self.process is not None:
            self.kill()
        self.port_mapper.kill()
        self.port_mapper.wait()

    def control(self, *arguments):
        subprocess.run([CONTROL, *arguments], env=self.environment, check=True,
                       stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    def remember(self):
        """What was made so far is known after a kill, too."""
        self.control("eval", "mnesia:sync_log().")

    def queue(self, **more):
        self.names += 1
        return Queue(self, f"oops-{self.names}", **more)


class Queue:
    """A durable queue behind a fanout exchange, as oops-tools' amqp2disk makes them."""

    def __init__(self, rabbit, name, exchange=None, arguments=None):
        self.rabbit, self.name, self.arguments = rabbit, name, arguments
        self.exchange = exchange or f"{name}-exchange"
        self.make()

    def make(self):
        with self.rabbit.connect() as connection, connection.channel() as channel:
            channel.exchange_declare(self.exchange, "fanout", durable=True, auto_delete=False)
            channel.queue_declare(self.name, durable=True, auto_delete=False,
                                  arguments=self.arguments)
            channel.queue_bind(self.name, self.exchange)

    def remove(self):
        with self.rabbit.connect() as connection, connection.channel() as channel:
            channel.queue_delete(self.name)

    def ready(self):
        """How many messages no consumer has."""
        with self.rabbit.connect() as connection, connection.channel() as channel:
            return channel.queue_declare(self.name, passive=True).message_count

    def take(self):
        """What is there now."""
        taken = []
        with self.rabbit.connect() as connection, connection.channel() as channel:
            while message := channel.basic_get(self.name, no_ack=True):
                taken.append(message)
        return taken

    def publish(self, *bodies):
        with self.rabbit.connect() as connection, connection.channel() as channel:
            for body in bodies:
                channel.basic_publish(amqp.Message(body, delivery_mode=2), self.exchange, "",
                                      mandatory=True)  # else one that no queue takes is dropped
