"""Caller transaction: your rows and the run are committed together, or not at all."""

from __future__ import annotations

from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

from holdfast import Holdfast

URL = "sqlite:///shop.db"
engine = create_engine(URL)
hf = Holdfast(URL)


@hf.job()
def send_receipt(order_id: int) -> str:
    return f"receipt for order {order_id}"


def place_order(session: Session, order_id: int) -> None:
    """Store the order and submit a run that sends its receipt."""
    session.execute(text("insert into orders (id) values (:id)"), {"id": order_id})
    send_receipt.using(connection=session).submit(order_id=order_id)


if __name__ == "__main__":
    with engine.begin() as connection:
        connection.execute(text("create table if not exists orders (id integer primary key)"))
    hf.start()  # creates Holdfast's tables; SQLite has only one writer, so this can't happen inside your transaction

    with Session(engine) as session:
        place_order(session, 1)
        session.commit()

    with Session(engine) as session:
        place_order(session, 2)
        session.rollback()  # removes both the order and the run

    with hf.worker(drain=True) as worker:
        worker.join(timeout=30)
    for run in hf.search().items:
        print(run.job, run.args, run.state)
    hf.close()
    engine.dispose()
