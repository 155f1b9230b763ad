"""The batch before which orders for another number of trainers are carried out."""

from mpidata.loading.turns import Turn, Turns
from mpidata.trainer.elastic.orders import Orders


def test_joined_trainer_may_meet_the_next_spare_before_its_first_step() -> None:
    dataset = Turns(lambda: None)
    turn, other = Turn(dataset, together=True, of=dataset), Turn(dataset, together=False)
    orders = Orders()
    assert not orders.is_of_step(turn)
    orders.carried_out(2)
    assert orders.is_of_step(turn) and not orders.is_of_step(other)


def test_orders_apply_before_a_batch_of_the_dataset_of_the_last_step() -> None:
    first, second = (Turns(lambda: None) for _ in range(2))
    turns = [Turn(of, together=True, of=of) for of in (first, second)]
    orders = Orders()
    orders.drew(turns[0])
    orders.stepped()
    orders.carried_out(1)
    assert orders.is_of_step(turns[0]) and not orders.is_of_step(turns[1])
