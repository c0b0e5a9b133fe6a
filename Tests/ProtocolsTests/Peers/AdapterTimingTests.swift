// When the simulated adapter prints, and the effect of bytes that are sent while it is busy.

import Peers
import Protocols
import Testing

@Suite("The simulated adapter's timing")
struct AdapterTimingTests {
  /// The car's latency and nine frames.
  let nineFrames: Nanoseconds = 5 * .millisecond + 9 * 1_500 * .microsecond

  @Test("without a frame count it waits after the last frame, adaptively or for the time of ATST")
  func waits() throws {
    var host = try VirtualHost.ready()
    #expect(host.duration("220101") == nineFrames + 28 * .millisecond)
    host.ask("ATAT2")
    #expect(host.duration("220101") == nineFrames + 14 * .millisecond)
    host.ask("ATST02")
    #expect(host.duration("220101") == nineFrames + 2 * 4_096 * .microsecond)
    host.ask("ATAT0")
    host.ask("ATST00")
    #expect(host.duration("220101") == nineFrames + 50 * 4_096 * .microsecond)
  }

  @Test("a frame count ends the wait, a small one cuts frames off, and a large one waits")
  func counts() throws {
    var host = try VirtualHost.ready()
    #expect(host.duration("2201019") == nineFrames)
    #expect(VirtualHost.message(in: host.ask("2201019"))?.count == 62)
    #expect(host.ask("2201012").split(separator: "\r").count == 3)
    #expect(host.duration("2201012") == 8 * .millisecond)
    #expect(host.duration("220101A") == nineFrames + 28 * .millisecond)
    #expect(host.duration("2201010") == nineFrames + 28 * .millisecond)
  }

  @Test("frames are printed at their times on the bus")
  func frames() throws {
    var host = try VirtualHost.ready()
    host.send("2201019\r")
    host.run(for: 9 * .millisecond + 400 * .microsecond)
    #expect(host.text().split(separator: "\r").count == 2)
    host.run(for: 100 * .microsecond)
    #expect(host.text().split(separator: "\r").count == 1)
  }

  @Test("NO DATA is printed after the time of ATST, for a wrong header and for a filter that blocks everything")
  func noData() throws {
    var host = try VirtualHost.ready()
    for setting in ["ATSH7E6", "ATCRA7E9"] {
      #expect(host.ask(setting) == "OK\r\r>")
      #expect(host.ask("220101") == "NO DATA\r\r>")
      #expect(host.duration("220101") == 50 * 4_096 * .microsecond)
      host.ask("ATSH7E4")
      host.ask("ATAR")
    }
    host.ask("ATST10")
    host.ask("ATCRA7E8")
    #expect(host.duration("220101") == 16 * 4_096 * .microsecond)
    host.ask("ATCRA7EX")
    #expect(VirtualHost.message(in: host.ask("220101"))?.count == 62)
  }

  @Test("any byte while it is busy stops it and is lost", arguments: [" ", "\r", "A"])
  func stopped(byte: String) throws {
    var host = try VirtualHost.ready()
    host.send("220101\r")
    host.run(for: 8 * .millisecond)
    _ = host.text()
    host.send(byte)
    #expect(host.text() == "STOPPED\r\r>")
    host.run(for: .second)
    #expect(host.text() == "", "nothing of the reply follows")
    #expect(host.ask("ATI") == "ELM327 v1.5\r\r>")
    host.send(" ")
    host.run(for: .second)
    #expect(host.text() == "", "a space while it is idle does no harm")
  }

  @Test("bytes after the one that stopped it are the next command")
  func stoppedByCommand() throws {
    var host = try VirtualHost.ready()
    host.send("220101\rXATI\r")
    #expect(host.text() == "STOPPED\r\r>ELM327 v1.5\r\r>")
    host.send("220101\r220101\r")
    host.run(for: .second)
    #expect(host.text() == "STOPPED\r\r>7EC037F2011AAAAAAAA\r\r>", "20101 is 2010 and a count")
  }

  @Test("a reset takes a while and ignores input meanwhile")
  func reset() throws {
    var host = try VirtualHost()
    #expect(host.duration("ATZ") == 600 * .millisecond)
    host.send("ATZ\r")
    host.run(for: 300 * .millisecond)
    host.send("ATI\r")
    host.run(for: .second)
    #expect(host.text() == "ATZ\r\r\rELM327 v1.5\r\r>")
  }

  @Test("a slow line takes ten bit times a byte, in both directions")
  func baud() throws {
    var host = try VirtualHost.ready(baud: 38_400)
    let byte: Nanoseconds = 10 * .second / 38_400
    // Eight bytes in, 182 out: the line, not the bus, is the bottleneck.
    #expect(host.duration("2201019") == 8 * byte + 5 * .millisecond + 1_500 * .microsecond + 182 * byte)
  }

  private static func send(_ effects: Effects) -> (bytes: [UInt8], id: SendID?)? {
    if case .send(_, let bytes, let id, _)? = effects.list.first { (bytes, id) } else { nil }
  }

  @Test("an adapter whose output is not read buffers little")
  func bounded() throws {
    var adapter = ELM327Adapter(timing: .instant)
    var effects = Effects()
    for _ in 0..<5_000 { adapter.handle(.received(.main, Array("2201019\rATZ\r".utf8)), at: 0, &effects) }
    #expect(effects.list.count == 1, "nothing is sent before the first send is confirmed")
    let id = try #require(Self.send(effects)?.id)
    effects.removeAll()
    adapter.handle(.sent(id, failure: nil), at: 0, &effects)
    let bytes = try #require(Self.send(effects)?.bytes)
    #expect(bytes.count < 70_000)
  }
}
