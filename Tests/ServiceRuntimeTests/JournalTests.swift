// Log records: fields for the journal, lines for a terminal, and escaping of untrusted text.

import Glibc
import Logging
import Testing

@testable import ServiceRuntime

@Suite(.serialized) struct JournalTests {
  /// What a logger with a line handler writes.
  private func written(_ body: (inout Logger) -> Void) -> String {
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var logger = Logger(label: "test") { _ in LineHandler(descriptor: ends[1]) }
    body(&logger)
    close(ends[1])
    defer { close(ends[0]) }
    var bytes = [UInt8](repeating: 0, count: 65536)
    return String(decoding: bytes[..<max(0, read(ends[0], &bytes, bytes.count))], as: UTF8.self)
  }

  @Test func `a line has time, level, device, link, message and metadata, in this order`() {
    let line = written { logger in
      logger[metadataKey: "device"] = "ev"
      logger.warning("no answer", metadata: ["link": "main", "next": "1 s", "attempt": "3"])
    }
    #expect(line.wholeMatch(of: /\d\d:\d\d:\d\d\.\d\d\d warning ev\/main: no answer attempt=3 next=1 s\n/) != nil, "\(line)")
    let bare = written { $0.notice("ready") }
    #expect(bare.dropFirst(13) == "notice ready\n")
  }

  @Test func `control characters are escaped and long records are truncated`() {
    let line = written { $0.error("a\nb\r\u{1b}[2J\u{7f}\u{2028}\u{202e}", metadata: ["device": "x\ny", "k\n": "\u{85}"]) }
    #expect(line.dropFirst(13) == "error x\\ny: a\\nb\\r\\u{1b}[2J\\u{7f}\\u{2028}\\u{202e} k\\n=\\u{85}\n")
    let long = written { $0.error("\(String(repeating: "x", count: 100_000))") }
    #expect(long.utf8.count < 5000 && long.hasSuffix("…\n"))
  }

  @Test func `lines that do not fit into the pipe are dropped and counted`() {
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    defer { ends.forEach { close($0) } }
    let logger = Logger(label: "test") { _ in LineHandler(descriptor: ends[1]) }
    for _ in 0..<5000 { logger.notice("a line that fills the pipe for as long as nothing is read from it") }
    var bytes = [UInt8](repeating: 0, count: 1 << 17)
    let count = read(ends[0], &bytes, bytes.count)
    #expect(count > 10_000 && count < 5000 * 40)
    logger.notice("after")
    let end = read(ends[0], &bytes, bytes.count)
    #expect(String(decoding: bytes.prefix(max(end, 0)), as: UTF8.self).contains(/after \(\d+ earlier lines were dropped/))
  }

  @Test func `a journald that is absent or does not read blocks no program, and the number of lost records is logged`() throws {
    let directory = try Directory()
    let logger = Logger(label: "test") { _ in JournalHandler(identifier: "test", path: directory.socket) }
    logger.notice("lost")
    let journald = try Receiver(at: directory.socket)
    defer { journald.close() }
    logger.notice("found", metadata: ["device": "ev"])
    #expect(
      journald.next()
        == "MESSAGE=found (1 earlier records were dropped: journald did not read them)\nPRIORITY=5\nSYSLOG_IDENTIFIER=test\nVEHICLED_DEVICE=ev\n"
    )
    for _ in 0..<5000 { logger.notice("a record that is not read") }
    while journald.next() != nil {}
    // A record that is too long for the socket is sent without its metadata.
    let long = String(repeating: "\u{1f697}", count: 4096)
    logger.notice("after", metadata: Logger.Metadata(uniqueKeysWithValues: (0..<40).map { ("key\($0)", "\(long)") }))
    #expect(journald.next()?.contains(/MESSAGE=after \(\d+ earlier records were dropped/) == true)
  }

  @Test func `the log level can be changed at run time`() {
    defer { Journal.level = .info }
    let lines = written { logger in
      logger.debug("one")
      Journal.level = .debug
      logger.debug("two")
      Journal.level = .error
      logger.warning("three")
    }
    #expect(lines.dropFirst(13) == "debug two\n")
  }

  @Test func `on a terminal level and device are columns, and colours show the level`() {
    let lines = [
      LineHandler.coloured(.warning, "no answer", ["device": "ev", "link": "main", "attempt": "3"]),
      LineHandler.coloured(.info, "ready", [:]),
    ]
    let plain = lines.map { $0.replacing(/\u{1b}\[\d+m/, with: "") }
    #expect(plain == ["warning  ev/main    no answer attempt=3", "info                ready"])
    #expect(lines[0].hasPrefix("\u{1b}[33mwarning") && lines.allSatisfy { $0.hasSuffix("\u{1b}[0m") })
  }

  @Test func `a journal record has the priority, the identifier and the metadata as fields`() {
    let fields = JournalHandler.fields("vehicled", .critical, "gone", ["device": "ev", "next-attempt": "1\ns", "é": "x", "_A9": "y"])
    #expect(
      fields == [
        "MESSAGE=gone", "PRIORITY=2", "SYSLOG_IDENTIFIER=vehicled", "VEHICLED__A9=y", "VEHICLED_DEVICE=ev",
        "VEHICLED_NEXT_ATTEMPT=1\\ns", "VEHICLED___=x",
      ])
    let priorities = Logger.Level.allCases.map { JournalHandler.fields("vehicled", $0, "", [:])[1] }
    #expect(priorities == ["7", "7", "6", "5", "4", "3", "2"].map { "PRIORITY=\($0)" })
    let long = JournalHandler.fields("vehicled", .info, "", [String(repeating: "k", count: 100): "v"])
    #expect(long[3] == "VEHICLED_" + String(repeating: "K", count: 55) + "=v")
    let known = JournalHandler.fields("vehicled", .info, "", ["alert": "a", .init(Journal.messageID): "c0ffee"])
    #expect(known[3...] == ["VEHICLED_ALERT=a", "MESSAGE_ID=c0ffee"])
    #expect(LineHandler.text(.info, "raised", ["alert": "a", .init(Journal.messageID): "c0ffee"]) == "info raised alert=a")
  }

  @Test func `the journal is recognised by device and inode`() {
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    defer { ends.forEach { close($0) } }
    var status = stat()
    fstat(ends[1], &status)
    #expect(Journal.isConnected(to: ends[1], "\(status.st_dev):\(status.st_ino)"))
    #expect(!Journal.isConnected(to: ends[1], "\(status.st_dev):\(status.st_ino + 1)"))
    #expect(!Journal.isConnected(to: ends[1], "\(status.st_dev)"))
    #expect(!Journal.isConnected(to: ends[1], nil))
    #expect(!Journal.isConnected(to: -1, "0:0"))
  }
}
