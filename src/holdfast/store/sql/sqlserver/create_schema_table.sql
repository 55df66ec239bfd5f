create table holdfast_schema (id int not null primary key, version int not null, touched int not null)
