#include "stream/checkpoint.h"

#include <stdio.h>

#include "stream/giving/giving.h"

void mpidata_checkpoint_want_locked(mpidata_trainer *trainer, int64_t number) {
    MPIDATA_LOCKED(&trainer->lock);
    if (number <= trainer->checkpoint.wanted) return;
    trainer->checkpoint.wanted = number;
    mpidata_lock_tell_locked(&trainer->lock, &trainer->news);
}

void mpidata_checkpoint_agree_locked(mpidata_trainer *trainer, int64_t number, int64_t batch) {
    MPIDATA_LOCKED(&trainer->lock);
    if (number <= trainer->checkpoint.agreed) return;
    trainer->checkpoint.agreed = number;
    trainer->checkpoint.due = 1;
    trainer->checkpoint.at = batch;
}

mpidata_word mpidata_checkpoint_decide(const mpidata_said *said) {
    const int newer = said->ordered > said->agreed, waits = said->takes || (said->unaware && !said->over);
    if (!newer || waits) return (mpidata_word){said->agreed, said->at, newer};
    return (mpidata_word){said->ordered, said->unaware ? said->granted : said->drawn, 0};
}

int mpidata_checkpoint_asks_locked(const mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    const mpidata_checkpoint *checkpoint = &trainer->checkpoint;
    return checkpoint->wanted > checkpoint->agreed && !checkpoint->due && !checkpoint->joining;
}

void mpidata_checkpoint_follow_locked(mpidata_trainer *trainer, const mpidata_said *said) {
    MPIDATA_LOCKED(&trainer->lock);
    mpidata_checkpoint *checkpoint = &trainer->checkpoint;
    const mpidata_word word = mpidata_checkpoint_decide(said);
    if (checkpoint->joining) {
        checkpoint->joining = 0;
        checkpoint->before = checkpoint->agreed = said->agreed;
        checkpoint->at = said->at;
        (void)mpidata_trainer_post_report_locked(trainer, MPIDATA_TRAINS, (double)said->agreed);
    }
    mpidata_checkpoint_agree_locked(trainer, word.number, word.batch);
    if (word.again) mpidata_checkpoint_want_locked(trainer, said->ordered);
    checkpoint->asking = checkpoint->asking && word.again && !checkpoint->due && !said->over;
}

int mpidata_checkpoint_is_due_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    if (trainer->job.plan.trainers == 1 && !trainer->job.plan.replay)
        mpidata_checkpoint_agree_locked(trainer, trainer->checkpoint.wanted, trainer->drawn);
    return trainer->checkpoint.due && trainer->checkpoint.at == trainer->drawn;
}

int mpidata_checkpoint_answer_locked(mpidata_trainer *trainer, int failed, int64_t bytes, const char *text) {
    MPIDATA_LOCKED(&trainer->lock);
    mpidata_event event = {.kind = MPIDATA_EVENT_CHECKPOINT_WRITTEN,
                           .written = {.number = trainer->checkpoint.agreed, .batch = trainer->checkpoint.at,
                                       .bytes = bytes, .failed = failed}};
    (void)snprintf(event.text, sizeof event.text, "%s", text ? text : "");
    int status = mpidata_trainer_post_locked(trainer, &event);
    mpidata_trainer_wake_locked(trainer);
    return status;
}

int mpidata_checkpoint_give_up_locked(mpidata_trainer *trainer) {
    MPIDATA_LOCKED(&trainer->lock);
    const int gave = trainer->giving.phase != MPIDATA_KEEPS; /* others may have drawn samples in its ledger */
    int over = mpidata_draws_ended(&trainer->phase) || mpidata_stopping(&trainer->phase) || trainer->job.plan.replay;
    if (trainer->checkpoint.wanted > trainer->checkpoint.agreed && !trainer->checkpoint.due && (over || gave)) {
        trainer->checkpoint.agreed = trainer->checkpoint.wanted;
    } else if (trainer->checkpoint.due && (gave || mpidata_draws_left(&trainer->phase))) {
        trainer->checkpoint.due = 0;
    } else {
        return MPIDATA_SUCCESS;
    }
    if (gave && !over)
        return mpidata_checkpoint_answer_locked(trainer, MPIDATA_WRITE_FAILED, 0,
                                                "a trainer drew nothing, and its samples went to others");
    return mpidata_checkpoint_answer_locked(trainer, MPIDATA_LOOP_OVER, 0, "the training loop is over");
}
