//! Encrypted connections.

use crate::harness::tests;
use crate::servers::{Server, TIMEOUT, address, find_program, require_program, wait_until};
use crate::{expect_error, one_shard_size};
use bloomline_redis::{AsyncRedisBloomFilter, RedisBloomFilter, RedisFilterError, RedisServer};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs};
use tempfile::TempDir;

tests! {
    servers_are_trusted_by_their_certificates,
    tls_servers_may_require_a_client_certificate,
}

/// The variable with the server's address, for the processes that the test starts. Only the environment of a process can
/// name the certificates that the process trusts.
const URL: &str = "BLOOMLINE_TEST_URL";

const CONFIGURATION: &str = "[req]
distinguished_name = name
x509_extensions = extensions
prompt = no
[name]
CN = bloomline
[extensions]
basicConstraints = CA:FALSE
subjectAltName = IP:127.0.0.1
";

/// Makes a key and a certificate for it, signed by itself.
fn certify(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("configuration"), CONFIGURATION).unwrap();
    let line = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -config configuration -keyout key.pem -out cert.pem";
    let output = Command::new("openssl").args(line.split(' ')).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The folders of two keys and their certificates, and the folder that contains them. The test is ignored without OpenSSL.
fn two_certificates() -> (TempDir, [PathBuf; 2]) {
    require_program(find_program(&["openssl"], "version"), "openssl");
    let folder = tempfile::tempdir().unwrap();
    let certificates = ["ours", "others"].map(|name| folder.path().join(name));
    certificates.iter().for_each(|folder| certify(folder));
    (folder, certificates)
}

/// A server with the certificate of a folder, which it trusts, and its address.
fn encrypted(certificate: &Path, options: &str) -> (Server, String) {
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| certificate.join(name).display().to_string());
    let files = format!("--tls-cert-file {cert} --tls-key-file {key} --tls-ca-cert-file {cert}");
    let server = Server::launch(&format!("--port 0 --tls-port PORT {files} {options}"));
    wait_until("it listens", || TcpStream::connect(("127.0.0.1", server.port)).is_ok());
    let url = format!("rediss://127.0.0.1:{}", server.port);
    (server, url)
}

/// Returns true if both kinds of clients accept the server.
fn is_trusted(url: &str) -> bool {
    let server = address(url);
    let started = Instant::now();
    let filter = RedisBloomFilter::create(&server, "f", &one_shard_size());
    // Connections end with their runtime.
    let runtime = crate::tasks::runtime();
    let other = runtime.block_on(AsyncRedisBloomFilter::create(&server, "f", &one_shard_size()));
    if let (Ok(mut filter), Ok(mut other)) =
        (filter.as_ref().map(RedisBloomFilter::new_client), other.as_ref().cloned())
    {
        let keys: Vec<u64> = (0..1000).collect();
        let mut new = [false; 1000];
        assert_eq!(filter.insert_batch(&keys, &mut new), Ok(1000));
        assert_eq!(runtime.block_on(other.insert_batch(&keys, &mut new)), Ok(0));
        return true;
    }
    for error in [filter.expect_err("neither"), other.expect_err("neither")] {
        assert!(matches!(error, RedisFilterError::Unreachable { .. }), "{error:?}");
        assert!(error.to_string().contains("certificate"), "{error}");
    }
    // It is not tried again.
    assert!(started.elapsed() < TIMEOUT);
    false
}

fn servers_are_trusted_by_their_certificates() {
    if let Ok(url) = env::var(URL) {
        println!("trusted: {}", is_trusted(&url));
        return;
    }
    let (_folder, [ours, others]) = two_certificates();
    let (_server, url) = encrypted(&ours, "--tls-auth-clients no");
    // The system does not know the authority.
    let address = address(&url).retry_timeout(Duration::from_secs(5));
    let certificate = fs::read(ours.join("cert.pem")).unwrap();
    let trusting = address.clone().certificate_authority(&certificate).unwrap();
    let mut filter = RedisBloomFilter::create(&trusting, "g", &one_shard_size()).unwrap();
    assert_eq!(filter.insert_batch(&(0..5000u64).collect::<Vec<_>>(), &mut vec![false; 5000]), Ok(5000));
    let other = crate::tasks::runtime()
        .block_on(async { AsyncRedisBloomFilter::open(&trusting, "g").await.unwrap().insert(&1u64).await });
    assert_eq!(other, Ok(false));
    let wary = address.clone().certificate_authority(&fs::read(others.join("cert.pem")).unwrap()).unwrap();
    expect_error(RedisBloomFilter::open(&wary, "g"), &["certificate", "--redis-ca"]);
    for pem in [&b""[..], b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let error = address.clone().certificate_authority(pem).unwrap_err();
        assert!(matches!(error, RedisFilterError::Certificate { .. }), "{error:?}");
    }
    let plain = RedisServer::new("redis://127.0.0.1:1").unwrap();
    let error = plain.certificate_authority(&certificate).unwrap_err();
    assert!(matches!(&error, RedisFilterError::Url { reason } if reason.contains("rediss://")), "{error:?}");
    drop(filter);
    for (folder, expected) in [(ours, true), (others, false)] {
        let output = Command::new(env::current_exe().unwrap())
            .args(["--exact", "tls::servers_are_trusted_by_their_certificates", "--nocapture"])
            .env(URL, &url)
            .env("SSL_CERT_FILE", folder.join("cert.pem"))
            .env_remove("SSL_CERT_DIR")
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(
            stdout.contains(&format!("trusted: {expected}\n")),
            "{stdout}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

/// As servers do by default.
fn tls_servers_may_require_a_client_certificate() {
    let (_folder, [ours, others]) = two_certificates();
    let read = |folder: &Path| ["cert.pem", "key.pem"].map(|name| fs::read(folder.join(name)).unwrap());
    let [[cert, key], [other_cert, other_key]] = [read(&ours), read(&others)];
    let (server, url) = encrypted(&ours, "");
    let plain = RedisServer::new(&format!("redis://127.0.0.1:{}", server.port)).unwrap();
    expect_error(RedisBloomFilter::open(&plain, "f"), &["rediss:// with TLS"]);
    let address = address(&url).retry_timeout(Duration::from_secs(1));
    let address = address.certificate_authority(&cert).unwrap();
    let runtime = crate::tasks::runtime();
    let open = |address: &RedisServer| {
        let filter = RedisBloomFilter::create(address, "f", &one_shard_size()).and_then(|mut filter| filter.insert(&1));
        let insert = async { AsyncRedisBloomFilter::create(address, "f", &one_shard_size()).await?.insert(&2).await };
        [filter, runtime.block_on(insert)]
    };
    assert_eq!(open(&address.clone().client_certificate(&cert, &key).unwrap()), [Ok(true), Ok(true)]);
    for wary in [address.clone(), address.clone().client_certificate(&other_cert, &other_key).unwrap()] {
        for result in open(&wary) {
            assert!(matches!(result, Err(RedisFilterError::Unreachable { .. })), "{result:?}");
        }
    }
    for (cert, key) in [(&cert, &other_key), (&cert, &cert), (&key, &key), (&Vec::new(), &key), (&cert, &Vec::new())] {
        let error = address.clone().client_certificate(cert, key).unwrap_err();
        assert!(matches!(error, RedisFilterError::Certificate { .. }), "{error:?}");
    }
    let error = RedisServer::new("redis://127.0.0.1:1").unwrap().client_certificate(&cert, &key).unwrap_err();
    assert!(matches!(error, RedisFilterError::Url { .. }), "{error:?}");
}
