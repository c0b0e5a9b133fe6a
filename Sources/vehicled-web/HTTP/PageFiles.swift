// The files of the page, read once at start and compressed. A request can only name a file that was found then, so no path is ever
// opened for a client.

import CDeflate
import Glibc
import NIOCore
import NIOHTTP1
import Protocols
import ServiceRuntime

struct PageFiles {
  private static let maxSize = 4 << 20
  private static let maxCount = 500
  private static let types = [
    "html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8",
    "json": "application/json", "svg": "image/svg+xml", "png": "image/png", "ico": "image/x-icon",
    "webmanifest": "application/manifest+json",
  ]

  private struct File {
    let type: String
    let tag: String
    let plain: ByteBuffer
    /// nil if compression does not shorten it.
    let compressed: ByteBuffer?
  }

  private var files: [String: File] = [:]

  /// Reads the directory and those below it, except hidden files, and files of other types than those of web pages.
  init(_ directory: String) throws(ValueError) {
    try add(directory, below: "/")
    guard files["/index.html"] != nil else {
      throw ValueError("\(directory) contains no index.html; name the directory of the page with --files, or with files in web.toml")
    }
    files["/"] = files["/index.html"]
  }

  private mutating func add(_ directory: String, below prefix: String) throws(ValueError) {
    let names: [String]
    do throws(FileError) { names = try Files.names(in: directory) } catch {
      throw ValueError("cannot read \(directory): \(errnoMessage(error.code)); name the directory of the page with --files")
    }
    for name in names where !name.hasPrefix(".") {
      let path = "\(directory)/\(name)"
      var status = stat()
      guard stat(path, &status) == 0 else { continue }
      if status.st_mode & S_IFMT == S_IFDIR {
        try add(path, below: prefix + name + "/")
      } else if let type = name.split(separator: ".").last.flatMap({ Self.types[String($0)] }) {
        guard files.count < Self.maxCount else {
          throw ValueError("\(directory) contains more than \(Self.maxCount) files; check the path")
        }
        files[prefix + name] = Self.file(try Files.read(path, limit: Self.maxSize), type)
      }
    }
  }

  private static func file(_ bytes: [UInt8], _ type: String) -> File {
    let checksum = bytes.withUnsafeBytes { libdeflate_crc32(0, $0.baseAddress, $0.count) }
    let compressed = compressed(bytes)
    return File(
      type: type, tag: "\(String(checksum, radix: 16))-\(bytes.count)", plain: ByteBuffer(bytes: bytes),
      compressed: compressed.isEmpty ? nil : ByteBuffer(bytes: compressed))
  }

  /// The gzip format; empty if it would not be shorter.
  private static func compressed(_ bytes: [UInt8]) -> [UInt8] {
    guard let compressor = libdeflate_alloc_compressor(12) else { return [] }
    defer { libdeflate_free_compressor(compressor) }
    return [UInt8](unsafeUninitializedCapacity: bytes.count) { output, count in
      count = bytes.withUnsafeBytes { libdeflate_gzip_compress(compressor, $0.baseAddress, $0.count, output.baseAddress, $0.count) }
    }
  }

  /// The reply to a request for a path; nil if there is no such file. Browsers ask again on each use, and get 304 if the file is the same.
  func reply(_ path: String, _ request: HTTPHeaders) -> Reply? {
    guard let file = files[path] else { return nil }
    let accepted = request[canonicalForm: "Accept-Encoding"]
    let isCompressed = file.compressed != nil && accepted.contains { Self.acceptsGzip($0) }
    let tag = "\"\(file.tag)\(isCompressed ? "-gzip" : "")\""
    var headers: HTTPHeaders = ["ETag": tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"]
    guard !request[canonicalForm: "If-None-Match"].contains(where: { $0 == tag || $0 == "W/\(tag)" || $0 == "*" }) else {
      return Reply(.notModified, headers)
    }
    headers.add(name: "Content-Type", value: file.type)
    guard isCompressed, let body = file.compressed else { return Reply(.ok, headers, body: file.plain) }
    headers.add(name: "Content-Encoding", value: "gzip")
    return Reply(.ok, headers, body: body)
  }

  /// Whether an element of Accept-Encoding is gzip, with a quality that is not 0.
  private static func acceptsGzip(_ element: Substring) -> Bool {
    let parts = element.lowercased().split(separator: ";").map { $0.filter { $0 != " " } }
    guard let name = parts.first, name == "gzip" || name == "*" else { return false }
    return !parts.dropFirst().contains { $0.hasPrefix("q=") && Double($0.dropFirst(2)) == 0 }
  }
}
