//! A tiny key-value store: a log that only grows, and an index in memory.
//!
//! ```text
//! cargo run --release --example kv
//! ```
//!
//! A put reserves its place in the log by one atomic addition and writes there; a get reads one range. Both take
//! `&self`: any number of threads and tasks use the store at once, with one open file and no lock around it.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};
use std::time::Instant;

use haft::fs::File;

/// Where a value is, and how long it is.
type Place = (u64, u32);

struct Store {
    file: File,
    end: AtomicU64,
    index: Mutex<HashMap<String, Place>>,
}

/// In front of each record: the lengths of the key and of the value.
const HEADER: u64 = 8;

impl Store {
    /// Opens the log and reads its index. A record that was cut off by a crash ends the log.
    fn open(path: &Path) -> io::Result<Store> {
        let file = File::options().read(true).write(true).create(true).open(path)?;
        let (length, mut end) = (file.len()?, 0);
        let mut index = HashMap::new();
        while end + HEADER <= length {
            let mut header = [0; HEADER as usize];
            file.read_exact_at(&mut header, end)?;
            let [key, value] = [&header[..4], &header[4..]].map(number);
            let next = end + HEADER + u64::from(key) + u64::from(value);
            if key == 0 || next > length {
                break;
            }
            let mut name = vec![0; key as usize];
            file.read_exact_at(&mut name, end + HEADER)?;
            let name = String::from_utf8(name).map_err(io::Error::other)?;
            index.insert(name, (end + HEADER + u64::from(key), value));
            end = next;
        }
        Ok(Store { file, end: end.into(), index: index.into() })
    }

    async fn put(&self, key: &str, value: &[u8]) -> io::Result<()> {
        let mut record = Vec::with_capacity(HEADER as usize + key.len() + value.len());
        record.extend((key.len() as u32).to_le_bytes());
        record.extend((value.len() as u32).to_le_bytes());
        record.extend(key.as_bytes());
        record.extend(value);
        let at = self.end.fetch_add(record.len() as u64, Ordering::Relaxed);
        self.file.write_all_at_async(record, at).await?;
        let place = (at + HEADER + key.len() as u64, value.len() as u32);
        self.index.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned(), place);
        Ok(())
    }

    async fn get(&self, key: &str) -> io::Result<Option<Vec<u8>>> {
        let place = self.index.lock().unwrap_or_else(PoisonError::into_inner).get(key).copied();
        let Some((at, length)) = place else { return Ok(None) };
        Ok(Some(self.file.read_exact_at_async(vec![0; length as usize], at).await?))
    }

    /// Returns when everything that was put is on the device.
    async fn sync(&self) -> io::Result<()> {
        self.file.sync_data_async().await
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte))
}

const THREADS: usize = 4;
const EACH: usize = 5_000;

fn main() -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("log");
    let store = Store::open(&path)?;

    let begin = Instant::now();
    on_all_threads(|thread| {
        let store = &store;
        async move {
            for i in 0..EACH {
                store.put(&format!("key {thread} {i}"), &[thread as u8; 100]).await?;
            }
            Ok(())
        }
    })?;
    block_on(store.sync())?;
    println!("{} puts by {THREADS} threads: {:?}", THREADS * EACH, begin.elapsed());

    // Once more from the disk, as after a restart.
    drop(store);
    let store = Store::open(&path)?;
    let begin = Instant::now();
    on_all_threads(|thread| {
        let store = &store;
        async move {
            for i in 0..EACH {
                let value = store.get(&format!("key {thread} {i}")).await?;
                assert_eq!(value.as_deref(), Some(&[thread as u8; 100][..]));
            }
            Ok(())
        }
    })?;
    println!("{} gets by {THREADS} threads: {:?}", THREADS * EACH, begin.elapsed());
    assert_eq!(block_on(store.get("no such key"))?, None);
    println!("the log has {} bytes", store.file.len()?);
    Ok(())
}

/// Runs one task on each of the threads.
fn on_all_threads<F>(task: impl Fn(usize) -> F + Sync) -> io::Result<()>
where
    F: Future<Output = io::Result<()>>,
{
    thread::scope(|scope| {
        let task = &task;
        let threads: Vec<_> =
            (0..THREADS).map(|thread| scope.spawn(move || block_on(task(thread)))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no task panics"))
    })
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Any executor will do; this is the smallest one.
fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
