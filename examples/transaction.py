"""One transaction for your rows and the run: both are there, or neither is."""

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


def order(session: Session, order_id: int) -> None:
    """Write the order and queue its receipt."""
    session.execute(text("insert into orders (id) values (:id)"), {"id": order_id})
    send_receipt.using(connection=session).submit(order_id=order_id)


if __name__ == "__main__":
    with engine.begin() as connection:
        connection.execute(text("create table if not exists orders (id integer primary key)"))
    hf.start()  # makes Holdfast's tables now: SQLite has one writer, so it can't be done inside your transaction

    with Session(engine) as session:
        order(session, 1)
        session.commit()

    with Session(engine) as session:
        order(session, 2)
        session.rollback()  # neither the order nor the run is there

    with hf.worker(drain=True) as worker:
        worker.join(timeout=30)
    for run in hf.search().items:
        print(run.job, run.args, run.state)
    hf.close()
    engine.dispose()
