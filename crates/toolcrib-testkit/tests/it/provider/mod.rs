//! The scripted provider: what it says with and without deferral, what it refuses, how it breaks.

mod agent;
mod checks;
mod faults;
mod native;
mod scripts;
mod streams;
