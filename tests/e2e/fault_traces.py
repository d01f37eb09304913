"""Reports with traces as Python, JavaScript, Java and C write them, and time-outs of SQL, each with
the fault that it is of. Of one fault there are several reports, in which everything differs that
differs from one occurrence to the next: lines, ids, values, addresses, hashes of builds, how deep a
recursion was, which functions of a framework lay around it. Two faults differ in the function that
failed, or in the statement that took too long, and in nothing else that lasts.

The fault is known from how a report was made, and from nothing else."""

import random
import uuid

TYPES = {
    "python": ["ValueError", "KeyError", "django.db.utils.OperationalError", "shop.errors.Refused"],
    "javascript": ["TypeError", "RangeError", "Error", "AxiosError"],
    "java": ["java.lang.IllegalStateException", "java.lang.NullPointerException",
             "com.acme.shop.RefusedException"],
    "c": ["SIGSEGV", "SIGABRT"],
}
VERBS = ["load", "save", "check", "send", "price", "merge", "parse", "apply", "render", "close"]
NOUNS = ["Order", "Basket", "User", "Invoice", "Stock", "Address", "Coupon", "Parcel"]


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def line(self):
        return self.random.randrange(1, 3000)

    def hex(self, digits):
        """Of a hash: with a decimal digit in it."""
        text = "".join(self.random.choice("0123456789abcdef") for _ in range(digits - 1))
        return text + self.random.choice("0123456789")

    def value(self):
        return self.random.choice([
            f"user {self.random.randrange(1, 10 ** 6)} is unknown",
            f"'{self.hex(9)}' is not allowed", f"no {uuid.UUID(int=self.random.getrandbits(128))}",
            f"at 0x{self.hex(12)}: gone"])

    def some(self, names):
        """A few of a framework's functions, of which one cannot say which they will be."""
        return self.random.sample(names, self.random.randrange(1, len(names)))

    # ---- Python

    def python_frames(self, chain):
        release = self.random.choice(["/srv/app-1.{}.{}", "/opt/shop/releases/2026{:04}{:04}"])
        root = release.format(self.random.randrange(9999), self.random.randrange(9999))
        python = f"/usr/lib/python3.{self.random.randrange(9, 13)}"
        around = self.some([("socketserver.py", "process_request"), ("threading.py", "run"),
                            ("wsgiref/handlers.py", "run"), ("contextlib.py", "inner")])
        frames = [(f"{python}/{file}", name) for file, name in around]
        for module, function in chain:
            repeats = self.random.randrange(1, 5) if function.startswith("walk") else 1
            frames += [(f"{root}/shop/{module}.py", function)] * repeats
            if self.random.random() < 0.3:
                frames.append((f"{root}/env/lib/python3.11/site-packages/django/db/utils.py",
                               self.random.choice(["execute", "inner", "__exit__"])))
        return frames

    def python_trace(self, chain, kind):
        text = "Traceback (most recent call last):\n"
        for file, function in self.python_frames(chain):
            text += f'  File "{file}", line {self.line()}, in {function}\n'
            if self.random.random() < 0.8:
                text += f"    {function}(at(x), {self.random.randrange(99)})\n"
        return text + f"{kind}: {self.value()}\n"

    def python(self, chain, kind):
        return {"exception": kind.split(".")[-1], "value": self.value(),
                "tb_text": self.python_trace(chain, kind)}

    def python_chained(self, chain, kind):
        half = max(1, len(chain) // 2)
        text = self.python_trace(chain[:half], "KeyError") + (
            "\nDuring handling of the above exception, another exception occurred:\n\n")
        return {"exception": kind, "value": self.value(),
                "tb_text": text + self.python_trace(chain[half:] or chain, kind)}

    def event(self, chain, kind):
        """As the Python SDK sends it, once it has its name in a report."""
        frames = [{"module": "django.core.handlers.base", "function": name, "lineno": self.line(),
                   "in_app": False, "vars": {"id": self.hex(8)}}
                  for name in self.some(["get_response", "_get_response", "inner", "__call__"])]
        for module, function in chain:
            repeats = self.random.randrange(1, 5) if function.startswith("walk") else 1
            frames += [{"module": f"shop.{module}", "filename": f"shop/{module}.py",
                        "abs_path": f"/srv/{self.hex(8)}/shop/{module}.py", "function": function,
                        "lineno": self.line(), "in_app": True}] * repeats
        return {"exceptions": {"values": [{"type": kind, "value": self.value(),
                                           "stacktrace": {"frames": frames}}]}}

    # ---- JavaScript

    def javascript(self, chain, kind):
        build, text = self.hex(8), f"{kind}: {self.value()}\n"
        for module, function in reversed(chain):
            repeats = self.random.randrange(1, 5) if function.startswith("walk") else 1
            host = self.random.choice(["https://cdn1.acme.example", "https://cdn2.acme.example"])
            for _ in range(repeats):
                text += (f"    at {self.random.choice(['', 'Object.', 'async '])}{function} ({host}"
                         f"/static/js/{module}.{build}.js:1:{self.line()})\n")
        for name in self.some(["processTicksAndRejections", "runMicrotasks", "listOnTimeout"]):
            text += f"    at {name} (node:internal/process/task_queues:{self.line()}:5)\n"
        if self.random.random() < 0.5:
            text += f"    at /srv/app/node_modules/express/lib/router.js:{self.line()}:3\n"
        return {"exception": kind, "value": self.value(), "tb_text": text}

    def firefox(self, chain, kind):
        build, text = self.hex(10), ""
        for module, function in reversed(chain):
            text += (f"{function}@https://acme.example/static/js/{module}-{build}.js?v="
                     f"{self.line()}:1:{self.line()}\n")
        return {"exception": kind, "value": self.value(), "tb_text": text}

    # ---- Java

    def java_frame(self, module, function):
        """Of some functions a proxy stands above, some are lambdas: which ones, lasts."""
        name, proxy = f"com.acme.shop.{module.capitalize()}", ""
        if function.startswith("send"):
            proxy = f"\tat {name}$$EnhancerBySpringCGLIB$${self.hex(8)}.{function}(<generated>)\n"
        if function.startswith("parse"):
            function = f"lambda${function}${self.random.randrange(30)}"
        return f"\tat {name}.{function}({module.capitalize()}.java:{self.line()})\n" + proxy

    def java_frames(self, chain):
        text = ""
        for module, function in reversed(chain):
            repeats = self.random.randrange(1, 5) if function.startswith("walk") else 1
            text += "".join(self.java_frame(module, function) for _ in range(repeats))
            if self.random.random() < 0.4:
                text += (f"\tat jdk.internal.reflect.GeneratedMethodAccessor"
                         f"{self.random.randrange(999)}.invoke(Unknown Source)\n")
        return text

    def java(self, chain, kind):
        text = self.random.choice(["", f'Exception in thread "pool-{self.line()}-thread-1" '])
        text += f"{kind}: {self.value()}\n" + self.java_frames(chain)
        for name in self.some(["Thread.run(Thread.java:829)", "reflect.Method.invoke(Method.java)",
                               "invoke.LambdaForm$MH/0x0000000800.invoke(LambdaForm$MH)"]):
            text += f"\tat java.base/java.lang.{name}\n"
        return {"exception": kind, "value": self.value(), "tb_text": text}

    def java_caused(self, chain, kind):
        half = max(1, len(chain) // 2)
        text = f"java.lang.RuntimeException: {self.value()}\n" + self.java_frames(chain[:half])
        text += f"\t... {self.line()} more\nCaused by: {kind}: {self.value()}\n"
        text += self.java_frames(chain[half:] or chain) + f"\t... {self.line()} more\n"
        return {"exception": "java.lang.RuntimeException", "tb_text": text}

    # ---- C

    def gdb(self, chain, kind):
        number, text = 0, ""
        for name in self.some(["__GI_raise", "__GI_abort", "__assert_fail"]):
            text += (f"#{number}  0x{self.hex(16)} in {name} () "
                     "from /lib/x86_64-linux-gnu/libc.so.6\n")
            number += 1
        root = f"/build/shop-{self.random.randrange(9)}.{self.random.randrange(99)}"
        for module, function in reversed(chain):
            repeats = self.random.randrange(1, 5) if function.startswith("walk") else 1
            for _ in range(repeats):
                suffix = self.random.choice(["", "", f".constprop.{self.random.randrange(9)}"])
                text += (f"#{number}  0x{self.hex(12)} in {function}{suffix} "
                         f"(order=0x{self.hex(12)}, n={self.line()}) "
                         f"at {root}/src/{module}.c:{self.line()}\n")
                number += 1
        return {"exception": kind, "tb_text": text}

    def cpp(self, chain, kind):
        text = ""
        for number, (module, function) in enumerate(reversed(chain)):
            text += (f"#{number} 0x{self.hex(12)} in (anonymous namespace)::{function}"
                     f"(shop::Order&, int) /build/shop/src/{module}.cc:{self.line()}:7\n")
        return {"exception": kind, "tb_text": text}

    def glibc(self, chain, kind):
        text = ""
        for _, function in reversed(chain):
            text += f"/usr/sbin/shopd({function}+0x{self.hex(3)}) [0x{self.hex(12)}]\n"
        text += f"/lib/x86_64-linux-gnu/libc.so.6(__libc_start_main+0xf0) [0x{self.hex(12)}]\n"
        return {"exception": kind, "tb_text": text}

    # ---- SQL

    def statement(self, table, column):
        values = ", ".join(str(self.line()) for _ in range(self.random.randrange(1, 6)))
        text = self.random.choice(["SELECT", "select"])
        comment = self.random.choice(["", f" /* request {self.hex(8)} */"])
        return (f"{text} {table}.id FROM {table}{comment} WHERE {table}.{column} = '{self.hex(6)}'"
                f" AND {table}.id IN ({values})\n LIMIT {self.line()}")

    def postgres(self, statement):
        parameters = f"\n[parameters: {{'a': {self.line()}}}]"
        return {"exception": "QueryCanceled",
                "value": "canceling statement due to statement timeout\n"
                         f"[SQL: {statement}]{parameters}"}

    def launchpad(self, statement):
        return {"exception": "TimeoutError", "value": statement}

    def soft(self, statement):
        others = [[i, i + 1, "SQL-main", f"SELECT {self.line()}"]
                  for i in range(self.random.randrange(4))]
        return {"exception": "SoftTimeout", "context": "/orders",
                "timeline": others + [[10, 5000 + self.line(), "SQL-main", statement]]}


def chains(count):
    """Calls from the outermost to that which failed. Neighbours differ in the last only."""
    found = []
    for i in range(count):
        verb, noun = VERBS[i % len(VERBS)], NOUNS[i // len(VERBS) % len(NOUNS)]
        outer = [("views", f"handle{NOUNS[i // 3 % len(NOUNS)]}"), ("models", "walkTree")]
        found.append(outer[:1 + i % 2] + [("models", f"{verb}{noun}")])
    return found


def reports(seed=1, faults=12, each=4):
    """[(fault, report), ...]: `faults` of each way in which traces are written, `each` times."""
    maker, found = Maker(seed), []
    ways = {"python": [maker.python, maker.python_chained, maker.event],
            "javascript": [maker.javascript, maker.firefox],
            "java": [maker.java, maker.java_caused],
            "c": [maker.gdb, maker.cpp, maker.glibc]}
    for language, functions in ways.items():
        for make in functions:
            for i, chain in enumerate(chains(faults)):
                kind = TYPES[language][i // 4 % len(TYPES[language])]
                found += [((make.__name__, i), make(chain, kind)) for _ in range(each)]
    for make in (maker.postgres, maker.launchpad, maker.soft):
        for i in range(faults):
            table, column = f"shop_{NOUNS[i % 8].lower()}", ["name", "state"][i // 8]
            found += [((make.__name__, i), make(maker.statement(table, column)))
                      for _ in range(each)]
    maker.random.shuffle(found)
    return found
