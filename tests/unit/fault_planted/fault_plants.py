"""Mistakes that the model of faults has to find (tests/sim/plants.py).

name: (what it does, [(file, text as it stands, text with the mistake)])"""

F = "src/fault/"

PLANTS = {
    "stamp_late": ("a checkpoint is written whenever it is ready, under a stamp of then", [
        (F + "book.c", "err = book_write_checkpoint(book, queue, stamp_us, view, e);",
         "err = book_write_checkpoint(\n\t\t\tbook, queue,\n\t\t\tPLANTED(stamp_late) ? "
         "store_stamp(book->site->store) : stamp_us,\n\t\t\tview, e);"),
        (F + "book_write.c", "\tif (clock_wall_ms(w->book->site->clock) >= w->until_ms)",
         "\tif (!PLANTED(stamp_late) &&\n\t    "
         "clock_wall_ms(w->book->site->clock) >= w->until_ms)")]),
    "book_early": ("the cell of the book is written before the summaries", [
        (F + "book_write.c", "\tstore_write_reset(book->write);\n"
         "\tfor (size_t i = 0; i < book->day_count && !err; i++) {",
         "\tstore_write_reset(book->write);\n\tif (PLANTED(book_early)) {\n"
         "\t\terr = book_put_cell(w, version);\n\t\tstore_write_next_stage(book->write);\n\t}\n"
         "\tfor (size_t i = 0; i < book->day_count && !err; i++) {")]),
    "not_cut": ("who begins a tenure leaves the last one as it is", [
        (F + "book_write.c", "\tif (before.tenure)\n\t\terr = book_put_cell(&w, before);",
         "\tif (before.tenure && !PLANTED(not_cut))\n\t\terr = book_put_cell(&w, before);"),
        (F + "book_write.c", "\tif (!err && before.tenure)\n",
         "\tif (!err && before.tenure && !PLANTED(not_cut))\n")]),
    "not_before": ("cells do not hold the value before", [
        (F + "versioned.c", "\tif (cell->has_before)\n\t\tversioned_put",
         "\tif (cell->has_before && !PLANTED(not_before))\n\t\tversioned_put")]),
    "not_whole": ("a value counts whether its checkpoint is whole or not", [
        (F + "versioned.c", "\tif (fault_tenures_have(tenures, cell->version)) {",
         "\tif (PLANTED(not_whole) || fault_tenures_have(tenures, cell->version)) {")]),
    "too_late": ("a value of a much later checkpoint is as if it were not there", [
        (F + "versioned.c", "\t\treturn ERR_RETRY; /* two",
         "\t\treturn PLANTED(too_late) ? 0 : ERR_RETRY; /* two")]),
    "unlisted": ("arrivals that are not listed yet are not remembered", [
        (F + "book_count.c", "\t\tif (!book_is_listed(&listings[i], book->arrived[i].place))",
         "\t\tif (!PLANTED(unlisted) &&\n"
         "\t\t    !book_is_listed(&listings[i], book->arrived[i].place))")]),
    "never_listed": ("a checkpoint does not list its arrivals", [
        (F + "book_write.c", "i < positions->unlisted_count && !err; i++)",
         "i < positions->unlisted_count && !err && !PLANTED(never_listed); i++)")]),
    "holes": ("what is not there yet is never looked for again", [
        (F + "book_read.c", "\twhile (writer->next < to)\n",
         "\tif (PLANTED(holes))\n\t\twriter->next = to;\n\twhile (writer->next < to)\n")]),
    "sequence": ("the first of an id is the one with the least sequence number", [
        (F + "positions.c", "\tif (!*any || fault_order_compare(order, first) < 0)",
         "\tif (!*any || (PLANTED(sequence) ? order->place.sequence < first->place.sequence\n"
         "\t\t\t\t\t: fault_order_compare(order, first) < 0))"),
        (F + "book_count.c", "\t\tif (fault_order_compare(&first, &order) < 0)",
         "\t\tif (PLANTED(sequence) ? first.place.sequence < order.place.sequence\n"
         "\t\t\t\t\t: fault_order_compare(&first, &order) < 0)"),
        (F + "positions.c", "\t       fault_order_compare(order, first) < 0;",
         "\t       (PLANTED(sequence) ? order->place.sequence < first->place.sequence\n"
         "\t\t\t\t   : fault_order_compare(order, first) < 0);")]),
    "not_recounted": ("a day stays though another arrival than the one it counted was first", [
        (F + "book_count.c", "\t\tbook_recount_later(book, fault_day_of(first.date_us));",
         "\t\tif (!PLANTED(not_recounted))\n"
         "\t\t\tbook_recount_later(book, fault_day_of(first.date_us));")]),
    "disordered": ("names beyond the largest number are counted in any order", [
        (F + "names.c", "names->disordered |= date_us <= names->latest_first_us;",
         "names->disordered |=\n\t\t\t!PLANTED(disordered) && date_us <= "
         "names->latest_first_us;")]),
    "replaced_added": ("what groups have by a recount is added to what they had before", [
        (F + "names.c", "name->replaced ? SLICE",
         "name->replaced && !PLANTED(replaced_added) ? SLICE")]),
    "closed_kept": ("what comes to a closed day is added to its lists, and that is all", [
        (F + "day.c", "\tif (day->closed)\n\t\tday->late = true;",
         "\tif (day->closed)\n\t\tday->late = !PLANTED(closed_kept);"),
        (F + "day.c", "\tif (!day->has_groups)\n\t\tday->late = true;",
         "\tif (!day->has_groups)\n\t\tday->late = !PLANTED(closed_kept);")]),
    "closed_early": ("a day is closed at its end", [
        (F + "book.c", ">= (day + 1) * FAULT_DAY_US + late_us;",
         ">=\n\t       (day + 1) * FAULT_DAY_US + (PLANTED(closed_early) ? 0 : late_us);")]),
    "never_closed": ("days stay open", [
        (F + "book.c", "\t\tif (!book_is_past(book, number)) {",
         "\t\tif (PLANTED(never_closed) || !book_is_past(book, number)) {")]),
    "cleared_early": ("volumes go as soon as the day is closed in memory", [
        (F + "book_write.c", "\t\tif (day->due_ms > now_ms)",
         "\t\tif (!PLANTED(cleared_early) && day->due_ms > now_ms)")]),
    "arrivals_early": ("arrivals go as soon as their run is sealed", [
        (F + "seal.c", "clock_mono_ms(book->site->clock) + STORE_QUERY_DEADLINE_MAX_MS};",
         "clock_mono_ms(book->site->clock) +\n"
         "\t\t(PLANTED(arrivals_early) ? 0 : STORE_QUERY_DEADLINE_MAX_MS)};")]),
    "cell_early": ("the cell of a sealed run is written before its directory", [
        (F + "seal_run.c", "\terr = err ? err : seal_put_directory(s);",
         "\ts->cell.chunks = PLANTED(cell_early);\n"
         "\tif (PLANTED(cell_early) && !err)\n\t\terr = seal_put_cell(s);\n"
         "\ts->cell.chunks = 0;\n\terr = err ? err : seal_put_directory(s);")]),
    "gone_kept": ("a book goes on though it lacks arrivals that are gone", [
        (F + "book_read.c", "\tif (!err && gone)\n",
         "\tif (!err && gone && !PLANTED(gone_kept))\n")]),
    "run_lost": ("a run is found by its next number, though that may be of another", [
        (F + "cursor.c", "\tuint64_t run = w->in_sealed ? w->sealed_run : at >> FAULT_RUN_BITS;",
         "\tuint64_t run = w->in_sealed && !PLANTED(run_lost) ? w->sealed_run\n"
         "\t\t\t\t\t\t\t   : at >> FAULT_RUN_BITS;")]),
    "filtered": ("a filter excludes a word that it has", [
        (F + "cursor_run.c", "\t\t*none = !words_filter_parts(run->filters[b], query);",
         "\t\t*none = PLANTED(filtered) || !words_filter_parts(run->filters[b], query);")]),
    "part_lost": ("a report is looked for in the part of another", [
        (F + "cursor_run.c", "\t\tif (parts >> fault_block_part(i) & 1)",
         "\t\tif (parts >> (fault_block_part(i) ^ (PLANTED(part_lost) ? 4 : 0)) & 1)")]),
    "ended_early": ("a writer has ended as soon as its process is dead", [
        (F + "book.c", "\t\t\twriter->ending = now_ms - writer->dead_ms > DAY_MS;",
         "\t\t\twriter->ending =\n"
         "\t\t\t\tPLANTED(ended_early) || now_ms - writer->dead_ms > DAY_MS;")]),
    "ended_unkept": ("a writer ends though no checkpoint has it", [
        (F + "book.c", "writer->ending || !writer->kept ||",
         "writer->ending || (!writer->kept && !PLANTED(ended_unkept)) ||")]),
    "ended_unknown": ("of a writer that is new, and has ended, all is taken to be counted", [
        (F + "book_read.c", "\tif (book->restored && ended && !known)",
         "\tif (!PLANTED(ended_unknown) && book->restored && ended && !known)")]),
    "owned_on": ("a tenure goes on though others may have owned the tenant", [
        (F + "book.c", "\tif (clock_wall_ms(book->site->clock) >= book->until_ms)",
         "\tif (!PLANTED(owned_on) && clock_wall_ms(book->site->clock) >= book->until_ms)")]),
    "unknown_on": ("a checkpoint whose outcome is not known is tried again with other values", [
        (F + "book_write.c", "\tif (err == ERR_UNKNOWN || err == ERR_CANCELLED)\n",
         "\tif (!PLANTED(unknown_on) && (err == ERR_UNKNOWN || err == ERR_CANCELLED))\n")]),
    "oldest_first": ("the row of tenures is read from its beginning", [
        (F + "book_read.c", ".key = key.parts, .backward = true};",
         ".key = key.parts, .backward = !PLANTED(oldest_first)};"),
        (F + "book_read.c", "\tif (!read.whole || book->version.tenure)\n\t\treturn 0;",
         "\tif (!read.whole || (book->version.tenure && !PLANTED(oldest_first)))\n"
         "\t\treturn 0;\n\tbuf_clear(&reading->last);")]),
    "one_slice": ("what lies behind the first slice of a row is left for the next time", [
        (F + "book_read.c", "\tbool left = left_of_holes || cut[0] || cut[1] || entered;",
         "\tbool left = !PLANTED(one_slice) &&\n"
         "\t\t    (left_of_holes || cut[0] || cut[1] || entered);")]),
    "ended_left": ("a writer that has ended is left out though not all of it was counted", [
        (F + "book_write.c", "\treturn !writer->ending && !book_writer_is_over(writer);",
         "\treturn !writer->ending &&\n"
         "\t       !(PLANTED(ended_left) ? writer->ended : book_writer_is_over(writer));")]),
    "half_round": ("after an error the positions stay as far as they have come", [
        (F + "book_read.c", "\t\tbook_positions_release(&book->positions);\n"
         "\t\tbook->positions = before;",
         "\t\tif (PLANTED(half_round)) {\n\t\t\tbook_positions_release(&before);\n"
         "\t\t\treturn err;\n\t\t}\n\t\tbook_positions_release(&book->positions);\n"
         "\t\tbook->positions = before;")]),
    "id_early": ("an arrival and its entry by id are written at once", [
        (F + "intake.c", "\tstore_write_next_stage(s->write);\n\tfor (size_t i = 0;",
         "\tif (!PLANTED(id_early))\n\t\tstore_write_next_stage(s->write);\n"
         "\tfor (size_t i = 0;")]),
    "void_early": ("a refusal makes voids of what an earlier sending may have stored", [
        (F + "intake.c", "\t} else if (s->unknown && err != ERR_CANCELLED) {",
         "\t} else if (err != ERR_CANCELLED &&\n\t\t   (PLANTED(void_early) ? err == "
         "ERR_UNKNOWN ||\n\t\t\t\t\t\t write->stages_kept > s->arrivals_stage\n"
         "\t\t\t\t\t       : s->unknown)) {")]),
    "unknown_done": ("a write whose outcome is not known is told as done", [
        (F + "intake.c", "\t} else if (!err) {\n\t\tif (s->intake->options.written)",
         "\t} else if (!err || (PLANTED(unknown_done) && err == ERR_UNKNOWN)) {\n"
         "\t\tif (s->intake->options.written)")]),
    "one_writer": ("a clock that is set back does not begin a writer", [
        (F + "intake.c", "(now_us < writer->last_us - CLOCK_BACK_US ||",
         "((!PLANTED(one_writer) && now_us < writer->last_us - CLOCK_BACK_US) ||"),
        (F + "intake.c",
         "item->date_us = writer->last_us = larger_of(now_us, writer->last_us + 1);",
         "item->date_us = writer->last_us =\n\t\tPLANTED(one_writer) ? now_us : "
         "larger_of(now_us, writer->last_us + 1);")]),
    "idle": ("a writer goes on after any time", [
        (F + "intake.c", "now_us > writer->last_us + QUIET_MAX_US ||",
         "(!PLANTED(idle) && now_us > writer->last_us + QUIET_MAX_US) ||"),
        (F + "intake.c", "(begun && now_us > writer->run_us + RUN_MAX_US))",
         "(!PLANTED(idle) && begun && now_us > writer->run_us + RUN_MAX_US))")]),
    "ended_below": ("a writer is ended under a lesser stamp than it was closed", [
        (F + "book.c", "writer->closed_us < stamp_us &&",
         "(PLANTED(ended_below) || writer->closed_us < stamp_us) &&")]),
    "acked_late": ("what is done a day later is told as done", [
        (F + "intake.c", "\treturn now_us > s->numbered_us + IDLE_MAX_US;",
         "\treturn !PLANTED(acked_late) && now_us > s->numbered_us + IDLE_MAX_US;")]),
    "judged_apart": ("items of one id are judged by different readings", [
        (F + "intake.c", "\tif (!intake_first(s->items[item->same].request, &first)) {",
         "\tif (!intake_first(PLANTED(judged_apart) ? item->request\n"
         "\t\t\t\t\t\t: s->items[item->same].request,\n\t\t\t  &first)) {")]),
    "same_kept": ("an item is repeated though the first of its submission has failed", [
        (F + "intake.c", "first->outcome == FAULT_FAILED ? FAULT_FAILED",
         "!PLANTED(same_kept) && first->outcome == FAULT_FAILED\n"
         "\t\t\t\t\t? FAULT_FAILED")]),
    "file_late": ("a file is written at once with its report", [
        (F + "intake.c", "\t\ts->arrivals_stage |= item->facts.attachments > 0;",
         "\t\ts->arrivals_stage |= !PLANTED(file_late) && item->facts.attachments > 0;")]),
    "not_entered": ("the days on which a group has reports are not noted", [
        (F + "book_write.c", "\treturn err || !cell->enters.len ? err",
         "\treturn err || !cell->enters.len || PLANTED(not_entered) ? err")]),
    "groups_stay": ("a closed day that is recounted keeps groups that it has no more", [
        (F + "book.c", "err = err ? err : book_load_groups(book, queue, day, e);",
         "if (PLANTED(groups_stay))\n\t\t\tday->has_groups = true;\n"
         "\t\terr = err ? err : book_load_groups(book, queue, day, e);")]),
    "told_by_date": ("the id of a message is of its date", [
        (F + "tell.c", "\tfault_message_id(kind, group, of_us, made->id);",
         "\tfault_message_id(kind, group,\n\t\t\t PLANTED(told_by_date)\n\t\t\t\t ? "
         "t->book->site->clock->wall_us(t->book->site->clock)\n\t\t\t\t : of_us,\n"
         "\t\t\t made->id);")]),
    "uncaused": ("a checkpoint does not write causes of groups", [
        (F + "book_write.c", "\treturn err ? err : book_put_cause(w, w->day, group);",
         "\treturn err || PLANTED(uncaused) ? err : book_put_cause(w, w->day, group);")]),
    "gone_listed": ("reports in the lists of days are collected", [
        (F + "collect_plan.c", "making->day_is_whole && !hash_table_find(&making->listed, id) &&",
         "making->day_is_whole &&\n\t    (PLANTED(gone_listed) || "
         "!hash_table_find(&making->listed, id)) &&")]),
    "gone_newest": ("the newest reports of a group are collected", [
        (F + "collect_plan.c", "group->seen <= making->rules->newest ||",
         "(!PLANTED(gone_newest) && group->seen <= making->rules->newest) ||")]),
    "gone_early": ("reports go as soon as the checkpoint says from which days", [
        (F + "collect.c", "\t\tplan->due_ms = due_ms;",
         "\t\tplan->due_ms = PLANTED(gone_early) ? 0 : due_ms;")]),
    "gone_recounted": ("a day is recounted though reports of it are gone", [
        (F + "book_count.c",
         "\tif (fault_day_is_disordered(day) && day->day < book->collected_day)",
         "\tif (!PLANTED(gone_recounted) && fault_day_is_disordered(day) &&\n"
         "\t    day->day < book->collected_day)"),
        (F + "book_read.c", "\tif (day >= book->collected_day)\n",
         "\tif (PLANTED(gone_recounted) || day >= book->collected_day)\n")]),
    "never_late": ("what comes for a minute that was counted is not counted again", [
        (F + "minutes.c", "\tif (!book->owned || minute >= book->minutes_closing)",
         "\tif (PLANTED(never_late) || !book->owned || minute >= book->minutes_closing)")]),
    "marked_early": ("a minute is noted as counted before it is taken", [
        (F + "minutes.c", "\tif (!*more)\n\t\treturn 0;\n",
         "\tif (!*more)\n\t\treturn 0;\n\tif (PLANTED(marked_early))\n"
         "\t\tminutes_note_taken(book, &part, true);\n")]),
    "erased_untold": ("books of other processes are not told of what was erased", [
        (F + "book_read.c", "\treturn begins ? ERR_RETRY : 0;",
         "\treturn begins && !PLANTED(erased_untold) ? ERR_RETRY : 0;")]),
    "erased_unnoted": ("ids are erased before a checkpoint has their days", [
        (F + "erase.c", "\t\tbook_recount_later(book, erasure->days.list[i].day);",
         "\t\tif (!PLANTED(erased_unnoted))\n"
         "\t\t\tbook_recount_later(book, erasure->days.list[i].day);")]),
    "erased_late": ("the minutes of what was erased are not counted again", [
        (F + "erase.c", "\t\tbook_note_late(book, erasure->list[i].order.date_us);",
         "\t\tif (!PLANTED(erased_late))\n"
         "\t\t\tbook_note_late(book, erasure->list[i].order.date_us);")]),
}

SOON = {"stamp_late", "book_early", "not_entered", "file_late", "arrivals_early",
        "run_lost", "filtered", "gone_listed", "never_late", "marked_early", "erased_untold"}

SEEDS = {"gone_listed": 39, "arrivals_early": 18, "book_early": 15, "erased_untold": 14}
