// AES for mirrors, and the hashes of passwords and sessions, by OpenSSL. Debian's updates fix the library, and a program that needs none of
// these does not load it.

import CCrypto

/// Why nothing can be encrypted or hashed, with the remedy.
public struct CryptographyError: Error, CustomStringConvertible {
  public let description: String
}

/// OpenSSL's library.
public enum Cryptography {
  /// Loads the library, so that later calls cannot fail because it is missing.
  public static func load() throws(CryptographyError) {
    if let problem = ccrypto_load() { throw CryptographyError(description: String(cString: problem)) }
  }

  /// Whether both are the same. The time that it takes depends only on their lengths.
  public static func areEqual(_ one: [UInt8], _ other: [UInt8]) -> Bool {
    one.count == other.count && zip(one, other).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
  }
}

/// AES-128 in CBC mode. Keys and initialization vectors have 16 bytes.
public enum AES128CBC {
  /// The encrypted bytes, with the padding of PKCS#7.
  public static func encrypt(_ bytes: [UInt8], key: [UInt8], iv: [UInt8]) throws(CryptographyError) -> [UInt8] {
    try transform(bytes, key, iv, encrypts: true, padding: true)
  }

  /// The decrypted bytes with their padding; the number of bytes must be a multiple of 16.
  public static func decryptUnpadded(_ bytes: [UInt8], key: [UInt8], iv: [UInt8]) throws(CryptographyError) -> [UInt8] {
    try transform(bytes, key, iv, encrypts: false, padding: false)
  }

  private static func transform(
    _ bytes: [UInt8], _ key: [UInt8], _ iv: [UInt8], encrypts: Bool, padding: Bool
  ) throws(CryptographyError) -> [UInt8] {
    try Cryptography.load()
    guard key.count == 16, iv.count == 16 else { throw CryptographyError(description: "key and IV must have 16 bytes each") }
    var count: CInt = -1
    let result = [UInt8](unsafeUninitializedCapacity: bytes.count + 16) { buffer, used in
      count = ccrypto_aes128_cbc(encrypts ? 1 : 0, key, iv, bytes, CInt(bytes.count), padding ? 1 : 0, buffer.baseAddress)
      used = Int(max(0, count))
    }
    guard count >= 0 else { throw CryptographyError(description: "\(bytes.count) bytes cannot be \(encrypts ? "encrypted" : "decrypted")") }
    return result
  }
}

/// SHA-256.
public enum SHA256 {
  /// The 32 bytes of the hash.
  public static func hash(_ bytes: [UInt8]) throws(CryptographyError) -> [UInt8] {
    try Cryptography.load()
    var hash = [UInt8](repeating: 0, count: 32)
    guard ccrypto_sha256(bytes, bytes.count, &hash) == 0 else { throw CryptographyError(description: "OpenSSL has no SHA-256") }
    return hash
  }
}

/// scrypt. Source: RFC 7914.
public enum Scrypt {
  /// A key of `count` bytes. `rounds` is scrypt's N, a power of two; `blockSize` its r; its p is 1. It needs 128 * N * r bytes of memory,
  /// at most 32 MiB.
  public static func key(
    _ password: [UInt8], salt: [UInt8], rounds: Int, blockSize: Int, count: Int
  ) throws(CryptographyError) -> [UInt8] {
    try Cryptography.load()
    var key = [UInt8](repeating: 0, count: count)
    let code = password.withUnsafeBytes { bytes in
      ccrypto_scrypt(
        bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count, salt, salt.count, UInt64(rounds), UInt64(blockSize), &key,
        count)
    }
    guard code == 0 else { throw CryptographyError(description: "scrypt rejects \(rounds) rounds with blocks of \(blockSize)") }
    return key
  }
}
