//! Showing what happened: a timeline as a page of its own, and a sequence diagram of small cases.
//!
//! | module | what it does |
//! |---|---|
//! | [`picture`] | lanes, bars and marks: what a page draws |
//! | [`builder`] | makes a timeline of what it is told, in the order of time |
//! | [`world`] | the timeline of a recorded world |
//! | [`trace`] | the timeline of one worker's inputs and answers |
//! | [`html`] | a timeline as one HTML file that needs nothing else |
//! | [`mermaid`] | a recording as a Mermaid sequence diagram |
//! | [`words`] | names and numbers as people read them |

pub mod builder;
pub mod html;
mod layout;
pub mod mermaid;
pub mod picture;
pub mod trace;
pub mod words;
pub mod world;
