import Cryptography
import Testing

/// What OpenSSL computes; mirrors and trivia accounts test the rest. Source of the vectors: NIST SP 800-38A, F.2.1; FIPS 180-2, B.1.
@Suite("Cryptography") struct CryptographyTests {
  private let key: [UInt8] = [0x2B, 0x7E, 0x15, 0x16, 0x28, 0xAE, 0xD2, 0xA6, 0xAB, 0xF7, 0x15, 0x88, 0x09, 0xCF, 0x4F, 0x3C]
  private let iv = [UInt8](0..<16)
  private let text: [UInt8] = [0x6B, 0xC1, 0xBE, 0xE2, 0x2E, 0x40, 0x9F, 0x96, 0xE9, 0x3D, 0x7E, 0x11, 0x73, 0x93, 0x17, 0x2A]

  @Test func `AES-128 in CBC mode`() throws {
    let sealed = try AES128CBC.encrypt(text, key: key, iv: iv)
    #expect(sealed.prefix(4) == [0x76, 0x49, 0xAB, 0xAC] && sealed.count == 32)
    #expect(try AES128CBC.decryptUnpadded(sealed, key: key, iv: iv) == text + [UInt8](repeating: 16, count: 16))
    let empty = try AES128CBC.encrypt([], key: key, iv: iv)
    #expect(empty.count == 16)
  }

  @Test func `keys of other lengths and incomplete blocks are errors`() {
    #expect(throws: CryptographyError.self) { try AES128CBC.encrypt(text, key: [1], iv: iv) }
    #expect(throws: CryptographyError.self) { try AES128CBC.encrypt(text, key: key, iv: []) }
    #expect(throws: CryptographyError.self) { try AES128CBC.decryptUnpadded([1, 2, 3], key: key, iv: iv) }
    #expect(throws: CryptographyError.self) { try Scrypt.key([1], salt: [], rounds: 3, blockSize: 8, count: 32) }
  }

  @Test func `SHA-256, and the comparison of hashes`() throws {
    let hash = try SHA256.hash(Array("abc".utf8))
    #expect(hash.prefix(4) == [0xBA, 0x78, 0x16, 0xBF] && hash.count == 32)
    #expect(Cryptography.areEqual(hash, hash) && !Cryptography.areEqual(hash, Array(hash.dropLast())))
    #expect(!Cryptography.areEqual(hash, hash.dropLast() + [0xAC]) && Cryptography.areEqual([], []))
  }
}
