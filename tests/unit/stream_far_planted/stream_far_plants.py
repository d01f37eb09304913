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
    "removed_wide": ("with a chunk others go that end where it does", [
        (S + "seal.c", "\tnext.checksum++;",
         "\tnext.checksum++;\n\tif (PLANTED(removed_wide))\n"
         "\t\tnext.length = CHUNK_DATA_MAX_BYTES;")]),
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
         "\terr = err ? err : known_read_properties(&r, site, queue);\n"
         "\treturn known_end(known, err);\n}\n\nint stream_known_read_blocks",
         "\tif (!PLANTED(blocks_first))\n"
         "\t\terr = err ? err : known_read_properties(&r, site, queue);\n"
         "\treturn known_end(known, err);\n}\n\nint stream_known_read_blocks"),
        (S + "known.c", "\tchunk_tail_key(&key, id);\n\tint err = store_row_wait(",
         "\tchunk_tail_key(&key, id);\n"
         "\tint err = PLANTED(blocks_first) ? known_read_properties(&r, site, queue) : 0;\n"
         "\terr = err ? err : store_row_wait(")]),
    "moved_lost": ("what was a chunk when that was read is not looked for in blocks", [
        (S + "chunk_reader.c", "\terr = err ? err : reader_scan_blocks(reader);",
         "\tif (sealed || !PLANTED(moved_lost))\n"
         "\t\terr = err ? err : reader_scan_blocks(reader);")]),
    "twice_found": ("lines in two blocks are found twice", [
        (S + "line_scan.c", "\tbegin = begin < blocks->at ?",
         "\tbegin = begin < blocks->at && !PLANTED(twice_found) ?")]),
    "deleted_low": ("a deletion has a stamp below that of the one before", [
        (S + "retain.c", "known->deleted_us + 1)",
         "PLANTED(deleted_low) ? 0 : known->deleted_us + 1)"),
        (S + "retain.c", "\treturn err || known->deleted_to >= offset\n",
         "\tif (PLANTED(deleted_low))\n\t\treturn err;\n"
         "\treturn err || known->deleted_to >= offset\n")]),
    "kept_all": ("what was received lately goes with what is old", [
        (S + "retain.c", "received.last_ms >= r->rules->before_ms",
         "(PLANTED(kept_all) ? received.first_ms : received.last_ms) >=\n"
         "\t    r->rules->before_ms")]),
    "failed_held": ("what could not be written counts as held", [
        (S + "collector.c", "\t\tchunk->stream->doubted = true;\n",
         "\t\tchunk->stream->doubted = !PLANTED(failed_held);\n")]),
    "stamp_late": ("samples are stamped when they are written, not before lines are read", [
        (S + "demux_points.c", "p->stamp_us + p->written",
         "PLANTED(stamp_late) ? 0 : p->stamp_us + p->written")]),
    "cell_early": ("how far lines are read is written before their samples are", [
        (S + "demux_pass.c", "\terr = err ? err : pass_write_bins(p, &stream->bins);",
         "\tif (!err && PLANTED(cell_early))\n\t\terr = pass_write_cell(p, false);\n"
         "\terr = err ? err : pass_write_bins(p, &stream->bins);")]),
    "unrested": ("streams that another has given back are read at once", [
        (S + "demux.c", "now_ms - demux->taken_ms[i] > rest_ms",
         "(PLANTED(unrested) || now_ms - demux->taken_ms[i] > rest_ms)")]),
    "remembered": ("what is known of streams outlives the lease", [
        (S + "demux.c", "\tif (clock_wall_ms(site->clock) >= demux->work.until_ms)\n",
         "\tif (!PLANTED(remembered) &&\n"
         "\t    clock_wall_ms(site->clock) >= demux->work.until_ms)\n")]),
    "top_forgotten": ("bins of lines that are ahead begin again after a restart", [
        (S + "demux_cell.c", "bin_start_ms(stream->state.top_ms) + BIN_MS",
         "bin_start_ms(PLANTED(top_forgotten) ? stream->state.last_ms\n"
         "\t\t\t\t\t\t      : stream->state.top_ms) + BIN_MS")]),
    "partial_counted": ("parts of lines are events of bins that are derived anew", [
        (S + "demux_bins.c", "!seen->partial &&",
         "(PLANTED(partial_counted) || !seen->partial) &&")]),
    "named_apart": ("streams of one source and datatype have several owners", [
        (S + "demux.c", "\tgroup.name = SLICE(\"\");",
         "\tif (!PLANTED(named_apart))\n\t\tgroup.name = SLICE(\"\");")]),
    "named_twice": ("two streams of one source and datatype have no name", [
        (S + "demux_cell.c", "\tof->named = !state->named &&",
         "\tof->named = !PLANTED(named_twice) && !state->named &&")]),
}

SOON = set(PLANTS)
