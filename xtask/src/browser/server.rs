//! Gives a page its files, and receives the page's events.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use crate::process::Result;

pub(super) struct Server {
    pub(super) port: u16,
    events: Receiver<String>,
}

impl Server {
    /// Serves the files of a folder at a free port, to this machine alone, until the process ends.
    pub(super) fn start(folder: &Path) -> Result<Self> {
        let cannot = |error| format!("no server for the page: {error}");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(cannot)?;
        let port = listener.local_addr().map_err(cannot)?.port();
        let (sender, events) = channel();
        let folder = folder.to_owned();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (folder, sender) = (folder.clone(), sender.clone());
                // A connection that breaks is the browser's affair.
                thread::spawn(move || answer(stream, &folder, &sender));
            }
        });
        Ok(Server { port, events })
    }

    /// The page's next event, if one comes in time.
    pub(super) fn event(&self, patience: Duration) -> Option<String> {
        self.events.recv_timeout(patience).ok()
    }
}

/// Answers one request.
fn answer(mut stream: TcpStream, folder: &Path, events: &Sender<String>) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut words = request.split(' ');
    let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    if method == "POST" {
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        // Nobody listens once the page has ended.
        let _ = events.send(String::from_utf8_lossy(&body).into_owned());
        return respond(&mut stream, "204 No Content", "text/plain", &[]);
    }
    match file(target).and_then(|path| fs::read(folder.join(&path)).ok().zip(Some(path))) {
        Some((bytes, path)) => respond(&mut stream, "200 OK", kind(&path), &bytes),
        None => respond(&mut stream, "404 Not Found", "text/plain", &[]),
    }
}

fn respond(stream: &mut TcpStream, status: &str, kind: &str, bytes: &[u8]) -> io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        bytes.len()
    )?;
    stream.write_all(bytes)
}

/// The file that a request means, if it lies in the folder.
fn file(target: &str) -> Option<PathBuf> {
    let path = target.split('?').next()?.strip_prefix('/')?;
    let path = PathBuf::from(path);
    path.components().all(|part| matches!(part, Component::Normal(_))).then_some(path)
}

fn kind(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html",
        Some("js" | "mjs") => "text/javascript",
        Some("wasm") => "application/wasm",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(server: &Server, request: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn files_and_events() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.mjs"), "1 + 1").unwrap();
        let server = Server::start(folder.path()).unwrap();
        let got = ask(&server, "GET /a.mjs?only=x HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(got.starts_with("HTTP/1.1 200") && got.ends_with("\r\n\r\n1 + 1"), "{got}");
        assert!(got.contains("text/javascript"), "{got}");
        for missing in ["/b.mjs", "/../a.mjs", "/"] {
            let got = ask(&server, &format!("GET {missing} HTTP/1.1\r\n\r\n"));
            assert!(got.starts_with("HTTP/1.1 404"), "{got}");
        }
        let said = "case ×";
        let length = said.len();
        ask(&server, &format!("POST /say HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{said}"));
        assert_eq!(server.event(Duration::from_secs(10)).as_deref(), Some(said));
    }
}
