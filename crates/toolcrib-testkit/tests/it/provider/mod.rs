//! Tests of the scripted provider: its replies with and without deferral, the requests that it rejects, and its faults.

mod agent;
mod checks;
mod faults;
mod native;
mod scripts;
mod streams;
