/* A trainer handles the deaths of others that the scheduler announces. */
#include "stream/deaths/adoption.h"

#include <string.h>

#include "check.h"

int main(void) {
    static mpidata_trainer trainer;
    trainer.job.plan.trainers = 3;
    trainer.job.plan.n_fields = 1;
    CHECK(!mpidata_lock_open(&trainer.lock) && !pthread_cond_init(&trainer.news, NULL));
    CHECK(mpidata_adoption_open(&trainer) == MPIDATA_SUCCESS && !trainer.adoption.on);
    mpidata_lock_take(&trainer.lock);
    mpidata_note_change_locked(&trainer, 1); /* in a job that cannot lose trainers */
    CHECK(trainer.adoption.n_told == 0 && !mpidata_must_meet_locked(&trainer));
    mpidata_lock_give(&trainer.lock);

    trainer.job.plan.trainers_at_least = 1;
    CHECK(mpidata_adoption_open(&trainer) == MPIDATA_SUCCESS && trainer.adoption.on);
    mpidata_lock_take(&trainer.lock);
    CHECK(!mpidata_must_meet_locked(&trainer));
    for (int i = 0; i < 5; i++) mpidata_note_change_locked(&trainer, 2);
    CHECK(trainer.adoption.n_told == 1 && trainer.adoption.told[0] == 2);
    CHECK(mpidata_must_meet_locked(&trainer));
    mpidata_note_change_locked(&trainer, 0);
    CHECK(trainer.adoption.n_told == 2 && trainer.adoption.told[1] == 0);
    trainer.adoption.left_out[0] = trainer.adoption.left_out[2] = 1; /* the scripts have regrouped without them */
    CHECK(!mpidata_must_meet_locked(&trainer));
    CHECK(!mpidata_all_adopted_locked(&trainer));
    CHECK(!mpidata_plan_change(&trainer.job.plan, 2, 0) && !mpidata_all_adopted_locked(&trainer));
    CHECK(!mpidata_plan_change(&trainer.job.plan, 0, 0) && mpidata_all_adopted_locked(&trainer));
    trainer.adoption.left_out[1] = 1; /* without one more, whose death the scheduler has not announced yet */
    CHECK(!mpidata_all_adopted_locked(&trainer));
    mpidata_lock_give(&trainer.lock);
    mpidata_adoption_close(&trainer);
    mpidata_plan_free(&trainer.job.plan);

    /* Trainer 2 is a spare: it joins once the scripts have regrouped with it and the scheduler has announced it. */
    trainer.job.plan = (mpidata_plan){.trainers = 3, .trainer_spares = 1, .trainers_at_least = 1, .n_fields = 1};
    memset(&trainer.adoption, 0, sizeof trainer.adoption);
    CHECK(mpidata_adoption_open(&trainer) == MPIDATA_SUCCESS && trainer.adoption.on);
    mpidata_lock_take(&trainer.lock);
    trainer.adoption.left_out[2] = 1;
    CHECK(mpidata_all_adopted_locked(&trainer) && !mpidata_must_meet_locked(&trainer));
    trainer.living = MPI_COMM_SELF;
    CHECK(mpidata_take_living_locked(&trainer) == MPI_COMM_SELF && trainer.living == MPI_COMM_NULL);
    trainer.living = MPI_COMM_SELF;
    trainer.adoption.left_out[2] = 0;
    CHECK(mpidata_take_living_locked(&trainer) == MPI_COMM_NULL && !mpidata_all_adopted_locked(&trainer));
    mpidata_note_change_locked(&trainer, mpidata_change_code(2, 1));
    CHECK(!mpidata_must_meet_locked(&trainer) && !mpidata_all_adopted_locked(&trainer));
    CHECK(mpidata_take_living_locked(&trainer) == MPI_COMM_SELF);
    CHECK(!mpidata_plan_change(&trainer.job.plan, 2, 1) && mpidata_all_adopted_locked(&trainer));
    mpidata_note_change_locked(&trainer, 2); /* and dies */
    CHECK(mpidata_must_meet_locked(&trainer) && !mpidata_all_adopted_locked(&trainer));
    mpidata_lock_give(&trainer.lock);
    mpidata_adoption_close(&trainer);
    mpidata_plan_free(&trainer.job.plan);
    return 0;
}
