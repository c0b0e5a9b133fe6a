// The files of the page: only those that were found, compressed, with tags.

import CDeflate
import Foundation
import NIOCore
import NIOHTTP1
import Testing

@testable import vehicled_web

@Suite("Files of the page") final class PageFilesTests {
  private let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
  private let script = String(repeating: "export const answer = 42\n", count: 50)

  init() throws {
    for (name, text) in ["index.html": "<!doctype html>", "modules/app.js": script, ".hidden.js": "x", "notes.txt": "x"] {
      let file = directory.appendingPathComponent(name)
      try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
      try Data(text.utf8).write(to: file)
    }
  }

  deinit { try? FileManager.default.removeItem(at: directory) }

  @Test func `only the files that were found exist`() throws {
    let files = try PageFiles(directory.path)
    #expect(files.reply("/", [:])?.headers["Content-Type"] == ["text/html; charset=utf-8"])
    #expect(files.reply("/modules/app.js", [:])?.headers["Content-Type"] == ["text/javascript; charset=utf-8"])
    for path in [
      "/.hidden.js", "/notes.txt", "/modules", "/modules/", "/missing.js", "//index.html", "/../index.html", "/modules/../index.html",
      "/%2e%2e/index.html", "index.html", "",
    ] {
      #expect(files.reply(path, [:]) == nil, "\(path)")
    }
  }

  @Test func `a file is compressed for those who accept it`() throws {
    let files = try PageFiles(directory.path)
    let plain = try #require(files.reply("/modules/app.js", [:]))
    #expect(
      String(buffer: plain.body) == script && plain.headers["Content-Encoding"].isEmpty && plain.headers["Vary"] == ["Accept-Encoding"])
    let compressed = try #require(files.reply("/modules/app.js", ["Accept-Encoding": "br, gzip;q=0.8"]))
    #expect(compressed.headers["Content-Encoding"] == ["gzip"] && compressed.headers["ETag"] != plain.headers["ETag"])
    let bytes = Array(compressed.body.readableBytesView)
    var output = [UInt8](repeating: 0, count: script.utf8.count + 1)
    var length = 0
    let decompressor = try #require(libdeflate_alloc_decompressor())
    defer { libdeflate_free_decompressor(decompressor) }
    #expect(libdeflate_gzip_decompress(decompressor, bytes, bytes.count, &output, output.count, &length) == LIBDEFLATE_SUCCESS)
    #expect(String(decoding: output.prefix(length), as: UTF8.self) == script && bytes.count < script.utf8.count / 5)
    for encodings in ["gzip;q=0", "br", "identity", "*;q=0.0"] {
      #expect(files.reply("/modules/app.js", ["Accept-Encoding": encodings])?.headers["Content-Encoding"].isEmpty == true, "\(encodings)")
    }
  }

  @Test func `an unchanged file is not sent again`() throws {
    let files = try PageFiles(directory.path)
    let tag = try #require(files.reply("/", [:])?.headers.first(name: "ETag"))
    let again = try #require(files.reply("/", ["If-None-Match": tag]))
    #expect(again.status == .notModified && again.body.readableBytes == 0 && again.headers["ETag"] == [tag])
    #expect(files.reply("/", ["If-None-Match": "\"other\", W/\(tag)"])?.status == .notModified)
    #expect(files.reply("/", ["If-None-Match": "\"other\""])?.status == .ok)
    try Data("<!doctype html> ".utf8).write(to: directory.appendingPathComponent("index.html"))
    #expect(try PageFiles(directory.path).reply("/", ["If-None-Match": tag])?.status == .ok)
  }

  @Test func `a directory without a page is an error with a remedy`() throws {
    for (path, message) in [("/nonexistent/page", "no such file"), (directory.path + "/modules", "contains no index.html")] {
      let error = #expect(throws: (any Error).self) { try PageFiles(path) }
      #expect("\(error.map { "\($0)" } ?? "")".contains(message) && "\(error.map { "\($0)" } ?? "")".contains("--files"))
    }
  }
}
