create database test;
create user root@'127.0.0.1';
grant all on *.* to root@'127.0.0.1' with grant option;
