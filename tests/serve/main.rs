//! The catalog server as its clients see it: a program that runs, asked over the network.

mod proto;
