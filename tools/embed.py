#!/usr/bin/env python3
"""Writes a file's bytes as C: embed.py FROM TO NAME gives the array NAME and NAME_bytes."""

import sys

BYTES_PER_LINE = 20


def main(source, target, name):
    with open(source, "rb") as file:
        text = file.read()
    rows = [text[i:i + BYTES_PER_LINE] for i in range(0, len(text), BYTES_PER_LINE)]
    with open(target, "w", encoding="ascii") as out:
        out.write(f"#include <stddef.h>\n\nextern const char {name}[];\n"
                  f"extern const size_t {name}_bytes;\n\n"
                  f"const size_t {name}_bytes = {len(text)};\nconst char {name}[] = {{\n")
        for row in rows:
            numbers = (byte if byte < 128 else byte - 256 for byte in row)
            out.write("\t" + " ".join(f"{number}," for number in numbers) + "\n")
        out.write("\t0,\n};\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
