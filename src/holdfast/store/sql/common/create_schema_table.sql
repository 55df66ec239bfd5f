create table if not exists holdfast_schema (id integer not null primary key, version integer not null, touched integer not null)
