"""Mistakes that the model of roll-ups has to find on a far store (tests/sim/plants.py).

name: (what it does, [(file, text as it stands, text with the mistake)])"""

BATCH = "src/rollup/batch/"

PLANTS = {
    "stamp_late": ("rows are stamped when they are written, not before their samples are read", [
        (BATCH + "batch.c", "b->write->stamp_us = stamp_us;",
         "b->write->stamp_us = PLANTED(stamp_late) ? 0 : stamp_us;")]),
    "claim_early": ("a claim is taken over as soon as its session ends by another clock", [
        ("src/lease/session.c", "seen->cell.until_ms + own->skew_max_ms",
         "seen->cell.until_ms +\n\t\t\t    (PLANTED(claim_early) ? 0 : own->skew_max_ms)")]),
    "judged_late": ("a session is judged by what the clock says after it was read", [
        ("src/lease/session.c", "all->now_ms <",
         "(PLANTED(judged_late) ? clock_wall_ms(own->clock) : all->now_ms) <")]),
    "break_unseen": ("claims outlive the session that broke", [
        ("src/lease/lease.c", "if (breaks != l->breaks)",
         "if (!PLANTED(break_unseen) && breaks != l->breaks)")]),
    "late_accepted": ("a write that was acknowledged too late counts as written", [
        ("src/ingest/ingest.c", "if ((!err || err == ERR_LIMIT) && !(write",
         "if (!PLANTED(late_accepted) && (!err || err == ERR_LIMIT) && !(write")]),
    "deleted_once": ("a deletion does not repeat what ended unknown, or late", [
        ("src/rollup/delete.c", "\treturn err == ERR_UNKNOWN ||",
         "\treturn (err == ERR_UNKNOWN && !PLANTED(deleted_once)) ||"),
        ("src/rollup/delete.c", "(!err && ago_ms >=",
         "(!err && !PLANTED(deleted_once) && ago_ms >=")]),
    "wish_late": ("a deletion has the stamp of its writes, not that of the wish", [
        ("src/rollup/delete.c", "d->write->stamp_us = d->options.stamp_us;",
         "d->write->stamp_us = PLANTED(wish_late) ? 0 : d->options.stamp_us;")]),
    "sweep_low": ("rows of closed slots go at the stamp of the wish, though they may be above it", [
        ("src/rollup/delete.c", "stamp_us = store_stamp(site->store) + site->skew_max_ms * 1000;",
         "stamp_us = PLANTED(sweep_low)\n\t\t\t\t   ? d->options.stamp_us\n"
         "\t\t\t\t   : store_stamp(site->store) + site->skew_max_ms * 1000;")]),
    "slot_early": ("a slot is not listed any more though a mark of it may be on its way", [
        ("src/marks/store.c", "cell->stamp_us >= reading->settled_ms * 1000",
         "(!PLANTED(slot_early) &&\n\t\t\t\t\t     "
         "cell->stamp_us >= reading->settled_ms * 1000)")]),
    "watermark_early": ("a pass tells how far it has rolled up before its rows are there", [
        ("src/rollup/job.c", "\tpass_begin(job, queue, own, asof_ms, until_ms);",
         "\tpass_begin(job, queue, own, asof_ms, until_ms);\n"
         "\tif (PLANTED(watermark_early))\n\t\tpass_tell(job, asof_ms, true);")]),
    "touch_once": ("a touch is remembered though nobody knows whether it is there", [
        ("src/ingest/ingest.c", "return err == ERR_UNKNOWN &&",
         "return err == ERR_UNKNOWN && !PLANTED(touch_once) &&"),
        ("src/ingest/ingest.c", "pending_write_end(pending, err ? err : q->r.err);",
         "pending_write_end(pending, PLANTED(touch_once) && err == ERR_UNKNOWN ? 0\n"
         "\t\t\t\t  : err ? err : q->r.err);")]),
    "tie_other": ("of a deletion and a value with one stamp the value stays", [
        ("tests/contract/naive.c", "return (int)old->deleted - (int)new_deleted;",
         "return ((int)old->deleted - (int)new_deleted) * (PLANTED(tie_other) ? -1 : 1);")]),
    "late_untold": ("nobody is told of a touch of a slot that has ended", [
        ("src/marks/store.c", "if (!marks->watermark || !store_is_shared(marks->of_store.store))",
         "if (PLANTED(late_untold) || !marks->watermark ||\n\t    "
         "!store_is_shared(marks->of_store.store))")]),
    "late_forgotten": ("a late touch counts no more when a pass began after it", [
        ("src/marks/watermark.c", "touched->at_ms > asof_ms - w->quiet_ms;",
         "touched->at_ms > asof_ms - (PLANTED(late_forgotten) ? 0 : w->quiet_ms);")]),
}

SOON = set(PLANTS) - {"stamp_late"}

SEEDS = {"claim_early": 64, "judged_late": 36, "late_accepted": 83, "deleted_once": 4786,
         "sweep_low": 1944, "slot_early": 113, "late_forgotten": 38}
