#!/usr/bin/env python3
"""Plants mistakes in copies of the product's sources, for tests that run seeds to find.

    plants.py SOURCE_DIR OUT_DIR LIST

writes OUT_DIR/planted_NAME.c for each source that LIST names, a file such as sim_plants.py, and
OUT_DIR/plants.h with the list. In a copy every mistake is there and asleep: PLANTED(name) is true
for the one that the test has woken. The product's own sources know nothing of this. A list may
have SOON, the names of those that ./test looks for; all of them are looked for with --long. It may
have SEEDS, by name a seed that has found the mistake, and is tried before all others: some are
found by one of thousands.

A place that is not found (somebody has changed the line) is left out of the copy; the test then
fails and names it: give it the new text in the list."""

import os
import runpy
import sys

def out_name(path):
    return "planted_" + os.path.basename(path)


def main():
    source_dir, out_dir, path_of_list = sys.argv[1:]
    read = runpy.run_path(path_of_list)
    plants = read["PLANTS"]
    soon, seeds = read.get("SOON", plants), read.get("SEEDS", {})
    texts, applied = {}, {}
    for name, (_, edits) in plants.items():
        applied[name] = True
        for path, old, new in edits:
            if path not in texts:
                with open(os.path.join(source_dir, path), encoding="utf-8") as file:
                    texts[path] = file.read()
            if texts[path].count(old) == 1:
                texts[path] = texts[path].replace(old, new)
            else:
                applied[name] = False
                print(f"plants.py: {name} is not planted: {path} has changed")
    for path, text in texts.items():
        with open(os.path.join(out_dir, out_name(path)), "w", encoding="utf-8") as file:
            file.write(f'#include "plants.h"\n{text}')
    with open(os.path.join(out_dir, "plants.h"), "w", encoding="utf-8") as file:
        file.write("/* Made by plants.py. */\n#ifndef PLANTS_H\n#define PLANTS_H\n")
        file.write("#define PLANTED(name) (planted == PLANT_##name)\n")
        file.write("enum plant { PLANT_none, " + ", ".join("PLANT_" + n for n in plants) +
                   ", PLANT_COUNT };\nextern int planted;\n")
        file.write("#define PLANT_LIST " + " ".join(
            f'{{"{n}", "{what}", {int(applied[n])}, {int(n in soon)}, {seeds.get(n, 0)}}},'
            for n, (what, _) in plants.items()) + "\n")
        file.write("#endif\n")


if __name__ == "__main__":
    main()
