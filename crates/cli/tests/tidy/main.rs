//! The habits of the project that a machine can keep.

mod documents;
mod files;
mod habits;
mod includes;
mod licences;
mod order;
mod programs;
mod public_items;
mod words;
