//! Substitutes for tables in a build without them. Values of these types cannot exist.

use crate::encode::Compression;
use crate::error::Error;
use crate::groups::values::Wanted as Values;
use crate::input::inputs::Input;
use crate::table::{Saved, Wanted};
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

pub enum TableReader {}
pub enum Rows {}
pub enum Selected {}
pub enum Group {}

pub enum Added {
    Texts(&'static str, Vec<Option<String>>),
    Numbers(&'static str, Vec<u64>),
}

#[derive(Clone, Copy, Default)]
pub struct Wish {
    pub compression: Option<Compression>,
    pub filter: bool,
    pub cuts: bool,
}

impl Wish {
    pub fn check(self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Default)]
pub struct Assembly {}

impl TableReader {
    pub fn open(_: Input, _: u64, _: Wanted<'_>, _: &Values) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn check_texts(&self) -> io::Result<()> {
        match *self {}
    }

    pub fn check_added(&self, _: &str) -> io::Result<()> {
        match *self {}
    }

    pub fn check_together(&self, _: &Self) -> io::Result<()> {
        match *self {}
    }

    pub fn next(&mut self) -> io::Result<Option<Rows>> {
        match *self {}
    }
}

impl Rows {
    pub fn count(&self) -> usize {
        match *self {}
    }

    pub fn bytes(&self, _: usize) -> usize {
        match *self {}
    }

    pub fn memory(&self) -> usize {
        match *self {}
    }

    pub fn each_row(&self, _: impl FnMut(&NoRow)) {
        match *self {}
    }

    pub fn each_value(&self, _: impl FnMut(&NoRow)) {
        match *self {}
    }

    pub fn each_text(&self, _: impl FnMut(Option<&str>)) {
        match *self {}
    }
}

pub enum NoRow {}

impl crate::key::Values for NoRow {
    fn count(&self) -> usize {
        match *self {}
    }

    fn value<'a>(&'a self, _: usize, _: &'a mut String) -> crate::key::Value<'a> {
        match *self {}
    }

    fn sortable<'a>(&'a self, _: usize, _: &'a mut String) -> crate::key::Value<'a> {
        match *self {}
    }
}

impl Selected {
    pub fn new(rows: Arc<Rows>, _: Vec<bool>, _: Option<Vec<Option<String>>>, _: Option<Added>, _: Wish) -> Self {
        match *rows {}
    }

    pub fn encode(&self) -> Result<Group, Error> {
        match *self {}
    }
}

impl Assembly {
    pub fn append(&mut self, group: &Group, _: &mut impl Write) -> io::Result<()> {
        match *group {}
    }

    pub fn is_begun(&self) -> bool {
        false
    }

    pub fn finish(&mut self, _: &mut impl Write) -> io::Result<()> {
        Ok(())
    }

    pub fn save(&self) -> io::Result<Option<Saved>> {
        Ok(None)
    }

    pub fn resumed(_: &Saved, _: u64) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

pub fn measure(_: &File, _: Option<&[String]>) -> io::Result<(u64, u64)> {
    Err(io::ErrorKind::Unsupported.into())
}
