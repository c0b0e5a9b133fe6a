// Frames in recordings: logs of can-utils, and frames of CAN sockets and slcan adapters.

import Testing

@testable import Protocols
@testable import Varlink

@Suite struct FrameRecordingTests {
  private static func text(_ recording: Recording) -> [String] {
    recording.lines.map {
      "\($0.t / .microsecond) \($0.dir.rawValue) \(String(decoding: recording.replayBytes(of: $0) ?? [], as: UTF8.self))"
    }
  }

  @Test func `a log of can-utils is read as lines of slcan`() throws {
    let log = """
      (1436509052.249713) vcan0 044#2A366C2BBA
      (1436509052.250000) can0 18FEEE00#R2 R
      (1436509052.250713) vcan0 123##1AABB
      (1436509052.250713) vcan0 20000080#0000000000000000
      (1436509053.249713) vcan0 7DF#0201 T
      """
    let recording = try Recording(parsing: Array((log + "\n").utf8))
    #expect(recording.header.frames == "slcan")
    #expect(Self.text(recording) == ["0 rx t04452A366C2BBA\r", "287 rx R18FEEE002\r", "1000000 tx t7DF20201\r"])
    // An incomplete last line is ignored; any other invalid line is an error with its number.
    #expect(try Recording(parsing: Array((log + "\n(14365090").utf8)).lines.count == 3)
    #expect(throws: ValueError("line 2: not a line of candump -L, such as (1436509052.249713) can0 7E0#0322010100000000")) {
      try Recording(parsing: Array("(1.000000) can0 044#2A\nrubbish\n(2.000000) can0 044#2A\n".utf8))
    }
  }

  @Test func `frames of a CAN socket are replayed as lines of slcan`() throws {
    let frame = try #require(CANFrame(candump: Array("18FEEE00#0102".utf8)))
    let header = Recording.text(Recording.Header(kind: "can", device: "bus", date: "2026-01-01T00:00:00Z", frames: Recording.socketCAN))
    let line = Recording.text(5000, link: "main", .received, bytes: SocketCAN.bytes(of: frame))
    let recording = try Recording(parsing: Array("\(header)\n\(line)\n".utf8))
    #expect(Self.text(recording) == ["5 rx T18FEEE0020102\r"])
    var reader = try #require(FrameReader(recording.header))
    var frames: [CANFrame] = []
    for line in recording.lines { reader.read(line) { frames.append($0) } }
    #expect(frames == [frame])
  }

  @Test func `lines of slcan can be split between messages, and recordings without frames have no reader`() throws {
    var reader = try #require(FrameReader(.init(kind: "obd", device: "ev", date: "", frames: Recording.slcan)))
    var frames: [String] = []
    for (dir, text) in [(.received, "t7E"), (.sent, "t7DF10"), (.received, "8141\r"), (.sent, "1\r"), (.state, "up")]
      as [(Recording.Direction, String)]
    {
      let line = Recording.Line(t: 0, link: "main", dir: dir, hex: Recording.hex(Array(text.utf8)), text: nil)
      reader.read(line) { frames.append($0.candumpText) }
    }
    #expect(frames == ["7E8#41", "7DF#01"])
    #expect(FrameReader(.init(kind: "obd", device: "ev", date: "")) == nil)
  }
}
