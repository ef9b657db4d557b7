//! Displays of a world's events: a timeline as an HTML page, and a sequence diagram of small cases.
//!
//! | module | content |
//! |---|---|
//! | [`picture`] | the lanes, bars and marks of a page |
//! | [`builder`] | makes a timeline from events, in the order of time |
//! | [`world`] | the timeline of a recorded world |
//! | [`trace`] | the timeline of one worker's inputs and answers |
//! | [`html`] | a timeline as one HTML file, complete in itself |
//! | [`mermaid`] | a recording as a Mermaid sequence diagram |
//! | [`words`] | names and numbers in a form for people |

pub mod builder;
pub mod html;
mod layout;
pub mod mermaid;
pub mod picture;
pub mod trace;
pub mod words;
pub mod world;
