//! The scripted provider: its replies with and without deferral, the requests it rejects, its faults.

mod agent;
mod checks;
mod faults;
mod native;
mod scripts;
mod streams;
