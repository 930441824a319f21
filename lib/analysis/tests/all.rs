//! All tests of this package that see it from outside, as one program: each program more is linked
//! with the whole package once more.

mod server;
mod server_attack;
mod server_inherit;
mod server_list;
mod server_losses;
mod server_properties;
mod server_speed;
