"""Mistakes that the model of streams has to find on a far store (tests/sim/plants.py).

name: (what it does, [(file, text as it stands, text with the mistake)])"""

S = "src/stream/"

PLANTS = {
    "noted_early": ("which bytes are in blocks is noted before the blocks are written", [
        (S + "seal.c", "\tint err = seal_try(s);\n\tfor",
         "\tint err = 0;\n\tif (PLANTED(noted_early)) {\n"
         "\t\ts->stamp_us = store_stamp(s->site->store);\n"
         "\t\terr = stream_known_read(&s->known, s->site, s->queue, s->id, 0, s->e);\n"
         "\t\tfor (size_t i = 0; i < s->known.held.count && !err; i++)\n"
         "\t\t\toffsets_add(&s->known.noted, s->known.held.list[i].begin,\n"
         "\t\t\t\t    s->known.held.list[i].end);\n"
         "\t\tif (!err && s->known.noted.count)\n\t\t\terr = seal_note(s);\n\t}\n"
         "\terr = err ? err : seal_try(s);\n\tfor")]),
    "note_late": ("a note has the stamp of its writing, whoever owns the stream by then", [
        (S + "seal.c", "\treturn now_ms + s->rules->write_max_ms +",
         "\treturn PLANTED(note_late) || now_ms + s->rules->write_max_ms +"),
        (S + "seal.c", "\tstreams_key(&key, s->id->tenant);\n",
         "\tif (PLANTED(note_late))\n\t\ts->stamp_us = store_stamp(s->site->store);\n"
         "\tstreams_key(&key, s->id->tenant);\n")]),
    "covered_half": ("a chunk goes though only its last byte is in a block", [
        (S + "seal.c", "\tif (begin < known->kept_from)\n",
         "\tif (PLANTED(covered_half))\n\t\tbegin = place->sequence_id - 1;\n"
         "\tif (begin < known->kept_from)\n")]),
    "holes_merged": ("ranges are joined over a hole of some bytes", [
        (S + "offsets.c", "offsets->list[*last].begin <= end)",
         "offsets->list[*last].begin <= end + (PLANTED(holes_merged) ? 20 : 0))"),
        (S + "offsets.c", "if (offsets->list[middle].end < offset)",
         "if (offsets->list[middle].end + (PLANTED(holes_merged) ? 20 : 0) < offset)")]),
    "blocks_first": ("which bytes are in blocks is read before the chunks are", [
        (S + "known.c",
         "\terr = err ? err : known_read_properties(r, site, queue);\n",
         "\tif (!PLANTED(blocks_first))\n"
         "\t\terr = err ? err : known_read_properties(r, site, queue);\n"),
        (S + "known.c", "\tchunk_tail_key(&key, r->id);\n\tint err = store_row_wait(",
         "\tchunk_tail_key(&key, r->id);\n"
         "\tint err = PLANTED(blocks_first) ? known_read_properties(r, site, queue) : 0;\n"
         "\terr = err ? err : store_row_wait(")]),
    "moved_lost": ("what was a chunk when that was read is not looked for in blocks", [
        (S + "chunk_reader.c", "\terr = err ? err : reader_scan_blocks(reader);",
         "\tif (sealed || !PLANTED(moved_lost))\n"
         "\t\terr = err ? err : reader_scan_blocks(reader);")]),
    "twice_found": ("lines in two blocks are found twice", [
        (S + "line_scan.c", "\tbegin = begin < blocks->at ?",
         "\tbegin = begin < blocks->at && !PLANTED(twice_found) ?")]),
    "kept_all": ("what was received lately goes with what is old", [
        (S + "retain.c", "received.last_ms >= r->rules->before_ms",
         "(PLANTED(kept_all) ? received.first_ms : received.last_ms) >=\n"
         "\t    r->rules->before_ms")]),
    "cell_early": ("how far lines are read is written before their samples are", [
        (S + "demux_pass.c", "\terr = err ? err : pass_write_bins(p, &stream->bins);",
         "\tif (!err && PLANTED(cell_early))\n\t\terr = pass_write_cell(p, false);\n"
         "\terr = err ? err : pass_write_bins(p, &stream->bins);")]),
    "top_forgotten": ("bins of lines that are ahead begin again after a restart", [
        (S + "demux_cell.c", "bin_start_ms(stream->state.top_ms) + BIN_MS",
         "bin_start_ms(PLANTED(top_forgotten) ? stream->state.last_ms\n"
         "\t\t\t\t\t\t      : stream->state.top_ms) + BIN_MS")]),
    "partial_counted": ("parts of lines are events of bins that are derived anew", [
        (S + "demux_bins.c", "(run->open && !run->cut)",
         "(run->open && !run->cut && !PLANTED(partial_counted))"),
        (S + "demux_bins.c", "\tif (run->begins && run->continues && run->begin >=",
         "\tif (!PLANTED(partial_counted) && run->begins && run->continues &&\n"
         "\t    run->begin >=")]),
}

SOON = set(PLANTS) - {"note_late"}

SEEDS = {"partial_counted": 99, "top_forgotten": 12}
