"""Mistakes that the simulation has to find (plants.py).

name: (what it does, [(file, text as it stands, text with the mistake)])"""

LMDB = "src/store/lmdb/"

PLANTS = {
    "no_sync": ("commits do not wait for the disk", [
        (LMDB + "env.c", "unsigned flags = MDB_NOTLS | MDB_NORDAHEAD;",
         "unsigned flags = MDB_NOTLS | MDB_NORDAHEAD | (PLANTED(no_sync) ? MDB_NOSYNC : 0);")]),
    "no_meta_sync": ("commits do not wait for the page that makes them valid", [
        (LMDB + "env.c", "flags |= MDB_NOSYNC;\n",
         "flags |= MDB_NOSYNC;\n\tif (PLANTED(no_meta_sync))\n\t\tflags |= MDB_NOMETASYNC;\n")]),
    "head_early": ("heads show samples before their commit", [
        (LMDB + "writer.c", "/* One transaction. An error that is returned",
         "static bool shown;\n\n/* One transaction. An error that is returned"),
        (LMDB + "writer.c", "\t\terr = env_commit(&engine->env, cycle->txn);",
         "\t\tshown = (PLANTED(head_early) || PLANTED(answer_early)) && !engine->sealed_count;\n"
         "\t\tif (shown) {\n\t\t\tuint64_t end = cycle->sequence;\n"
         "\t\t\tcycle->sequence = engine->next_sequence;\n\t\t\tapply_batches(cycle);\n"
         "\t\t\tcycle->sequence = end;\n\t\t}\n"
         "\t\tif (shown && PLANTED(answer_early)) {\n\t\t\tcomplete_all(cycle->batches, 0);\n"
         "\t\t\tcycle->batches = NULL;\n\t\t}\n"
         "\t\terr = env_commit(&engine->env, cycle->txn);"),
        (LMDB + "writer.c", "static void committed(struct cycle *cycle)\n",
         "static bool shown;\nstatic void committed(struct cycle *cycle)\n"),
        (LMDB + "writer.c", "\tapply_batches(cycle);\n\tASSERT(cycle->sequence == end);",
         "\tif (!shown)\n\t\tapply_batches(cycle);\n\tcycle->sequence = end;")]),
    "answer_early": ("batches are answered before their commit", []),  # with the one above
    "answer_anyway": ("a commit that failed is answered as if it had not", [
        (LMDB + "writer.c", "\t\t\terr = ERR_UNKNOWN;\n",
         "\t\t\terr = PLANTED(answer_anyway) ? 0 : ERR_UNKNOWN;\n")]),
    "goes_on": ("after a commit that failed the store goes on", [
        (LMDB + "writer.c", "\t\t\tdie(engine, err);\n",
         "\t\t\tif (!PLANTED(goes_on))\n\t\t\t\tdie(engine, err);\n")]),
    "abort_seals": ("heads go although the transaction that sealed them was undone", [
        (LMDB + "writer.c", "\t\tmaintain_aborted(engine);\n",
         "\t\tPLANTED(abort_seals) ? maintain_committed(engine) : maintain_aborted(engine);\n")]),
    "series_late": ("a new series is stored after its first samples", [
        (LMDB + "writer.c", "int err = registry_write(&cycle->engine->registry, cycle->txn, "
         "&cycle->written);",
         "int err = 0;\n\tif (PLANTED(series_late) && cycle->batches)\n"
         "\t\tcycle->written = (struct registry_written){0};\n\telse\n"
         "\t\terr = registry_write(&cycle->engine->registry, cycle->txn, &cycle->written);")]),
    "cut_far": ("the journal is cut one page too far", [
        (LMDB + "upkeep/journal_list.c", "return entry->first_sequence + entry->records <= keep;",
         "return entry->first_sequence + (PLANTED(cut_far) ? 0 : entry->records) <= keep;")]),
    "expires_early": ("a segment expires while its last day is still in sight", [
        (LMDB + "upkeep/expire.c", "return id->segment < floor_div(gone_ms, width_ms);",
         "return id->segment < floor_div(gone_ms, width_ms) + PLANTED(expires_early);")]),
    "clock_believed": ("the clock is believed at once", [
        ("src/base/clock_watch.c", "mark->stood_us >= CLOCK_STANDS_US)",
         "mark->stood_us >= (PLANTED(clock_believed) ? 0 : CLOCK_STANDS_US))")]),
    "doubt_lost": ("a restart believes the clock", [
        (LMDB + "upkeep/doubt.c", "\tif (known.sure_us)\n",
         "\tif (known.sure_us && !PLANTED(doubt_lost))\n")]),
    "delete_short": ("a deletion leaves out the last segment it touches", [
        (LMDB + "upkeep/delete.c",
         "segment_of(sheet->table, sheet->period_ms, record->end_ms - 1);",
         "segment_of(sheet->table, sheet->period_ms, record->end_ms - 1) -\n"
         "\t\t       PLANTED(delete_short);")]),
    "flush_reused": ("flush numbers begin again after a restart", [
        (LMDB + "engine.c", "engine->next_flush = engine->stored_flush = (uint32_t)high[3];",
         "engine->next_flush = engine->stored_flush =\n"
         "\t\tPLANTED(flush_reused) ? 1 : (uint32_t)high[3];")]),
    "version_reused": ("versions of cells begin again after a restart", [
        (LMDB + "engine.c", "engine->next_version = high[1];",
         "engine->next_version = PLANTED(version_reused) ? 1 : high[1];")]),
    "stamp_lost": ("stamps are not kept over a restart", [
        (LMDB + "engine.c", "engine->stamp_us = (int64_t)high[0];",
         "engine->stamp_us = PLANTED(stamp_lost) ? 0 : (int64_t)high[0];")]),
    "sequence_lost": ("where the journal goes on is not kept when it is empty", [
        (LMDB + "engine.c", "engine->next_sequence = high[2];",
         "engine->next_sequence = PLANTED(sequence_lost) ? 1 : high[2];")]),
    "replay_keeps": ("replay passes over deletions: what was deleted comes back", [
        (LMDB + "replay.c", "\t\theads_apply_delete(&engine->heads, record);\n",
         "\t\tif (!PLANTED(replay_keeps))\n"
         "\t\t\theads_apply_delete(&engine->heads, record);\n")]),
    "range_end": ("the end of a range belongs to it, in heads", [
        (LMDB + "heads.c", "if (part.ts_ms < start_ms || part.ts_ms >= end_ms ||",
         "if (part.ts_ms < start_ms ||\n"
         "\t\t    (PLANTED(range_end) ? part.ts_ms > end_ms : part.ts_ms >= end_ms) ||")]),
    "range_start": ("the start of a range does not belong to it, in blocks", [
        (LMDB + "group.c",
         "if (!any || samples->ts_ms[i] < start_ms || samples->ts_ms[i] >= end_ms)",
         "if (!any || samples->ts_ms[i] < start_ms + (PLANTED(range_start) && start_ms > 0) ||\n"
         "\t\t    samples->ts_ms[i] >= end_ms)")]),
    "first_wins": ("of two values of one sample in a head the earlier wins", [
        (LMDB + "heads.c", "return (x->row > y->row) - (x->row < y->row);",
         "return PLANTED(first_wins) ? (x->row < y->row) - (x->row > y->row)\n"
         "\t\t\t\t   : (x->row > y->row) - (x->row < y->row);")]),
    "seal_short": ("a seal leaves out the last row of its head", [
        (LMDB + "heads.c", "at = part_view(at, &part);\n\t\tput_in_strips(",
         "at = part_view(at, &part);\n"
         "\t\tif (!PLANTED(seal_short) || at < end)\n\t\t\tput_in_strips(")]),
    "epoch_head": ("readers are not told that a head has gone", [
        (LMDB + "heads.c", "\theads->epoch++;\n\theads_release_spare(heads, head->data,",
         "\theads->epoch += !PLANTED(epoch_head);\n\theads_release_spare(heads, head->data,")]),
    "epoch_delete": ("readers are not told that a deletion was applied to the heads", [
        (LMDB + "heads.c", "{\n\theads->epoch++;\n",
         "{\n\theads->epoch += !PLANTED(epoch_delete);\n")]),
    "runs_ahead": ("rows that go straight to extents claim the next record's sequence", [
        (LMDB + "writer.c", "runs_put(cycle->engine, cycle->txn, s, cycle->sequence - 1);",
         "runs_put(cycle->engine, cycle->txn, s,\n"
         "\t\t\t\t       cycle->sequence - !PLANTED(runs_ahead));")]),
    "runs_alone": ("rows go straight to extents without what their heads hold", [
        (LMDB + "upkeep/bulk_append.c", "\tseal_collect(engine, &runs->id, true, &sealing);\n",
         "\tseal_collect(engine, &runs->id, true, &sealing);\n"
         "\tif (PLANTED(runs_alone))\n\t\tsealing.count = 0;\n")]),
    "runs_after": ("rows go straight to extents past rows that the same commit journals", [
        (LMDB + "upkeep/bulk_append.c", "UINT32_C(1) << t & ~journaled;",
         "UINT32_C(1) << t & ~(PLANTED(runs_after) ? 0 : journaled);")]),
    "stamp_order": ("of two cells the one that comes later wins, whatever its stamp", [
        (LMDB + "cells.c", "\tif (write->stamp_us != stored->stamp_us)\n\t\treturn 0;",
         "\t*wins = *wins || PLANTED(stamp_order);\n"
         "\tif (write->stamp_us != stored->stamp_us)\n\t\treturn 0;")]),
    "row_seen": ("reads do not look whether a row was deleted", [
        (LMDB + "cell.c", "\tif (!(engine->deleted_rows >> table & 1))\n",
         "\tif (!(engine->deleted_rows >> table & 1) || PLANTED(row_seen))\n")]),
    "condition_passed": ("a conditional write replaces any version", [
        (LMDB + "cells.c", "{.applied = version == write->version};",
         "{.applied = version == write->version ||\n"
         "\t\t\t\t\t\t\t(version && PLANTED(condition_passed))};")]),
    "token_repeats": ("the next slice of a read begins with the sample that ended the last", [
        (LMDB + "read/read_range.c", ": samples->ts_ms[count - 1] + 1;",
         ": samples->ts_ms[count - 1] + !PLANTED(token_repeats);")]),
    "ingest_deaf": ("ingest answers for samples that the store refused", [
        ("src/ingest/ingest.c", "\tif (err && err != ERR_LIMIT) {\n\t\trequest_fail(q, err, write",
         "\tif (err && err != ERR_LIMIT && !PLANTED(ingest_deaf)) {\n"
         "\t\trequest_fail(q, err, write")]),
}

SEEDS = {"epoch_delete": 1944, "flush_reused": 255, "doubt_lost": 99, "clock_believed": 45}
