// Framing and decoding accept or reject any bytes, and never trap.

import Testing

@testable import Protocols
@testable import Varlink

@Suite struct VarlinkFuzzTests {
  let seeds: [[UInt8]] = [
    #"{"method":"io.vehicled.Get","parameters":{"references":["ev.rpm","x"]},"more":false}"#,
    #"{"method":"io.vehicled.Set","parameters":{"device":"d","property":"p","value":{"float":-1.5e3},"lease":null},"oneway":true}"#,
    #"{"method":"io.vehicled.Call","parameters":{"device":"d","action":"a","arguments":{"x":{"list":["\u00e9\n"]},"y":{"int":7}}}}"#,
    #"{"method":"org.varlink.service.GetInfo"}"#,
  ].map { Array($0.utf8) + [0] }
  let pieces: [[UInt8]] = [
    "{", "}", "[", "]", "\"", "\\", ":", ",", "\\ud800", "1e999", "-", "null", "\u{feff}", "\"method\":", "\"more\":true,",
  ].map { Array($0.utf8) }

  @Test func `mutated calls never trap`() {
    var random = Seeded(state: 42)
    var accepted = 0
    var refused = 0
    for _ in 0..<20_000 {
      var bytes = seeds[Int(random.next() % UInt64(seeds.count))]
      for _ in 0...random.next() % 3 {
        let at = Int(random.next() % UInt64(bytes.count))
        switch random.next() % 5 {
        case 0: bytes[at] = UInt8(truncatingIfNeeded: random.next())
        case 1: bytes.remove(at: at)
        case 2: bytes.insert(contentsOf: pieces[Int(random.next() % UInt64(pieces.count))], at: at)
        case 3: bytes[at] ^= 1 << (random.next() % 8)
        default: bytes.insert(contentsOf: bytes[at..<min(bytes.count, at + Int(random.next() % 20))], at: at)
        }
        if bytes.isEmpty { bytes = [0] }
      }
      var framing = VarlinkFraming()
      let cut = Int(random.next() % UInt64(bytes.count))
      do {
        for part in [bytes[..<cut], bytes[cut...]] {
          framing.append(part)
          while let call = try framing.next({ try VarlinkCall($0) }) {
            _ = try? call.parameters(as: Contract.Get.Parameters.self)
            _ = try? call.parameters(as: Contract.Set.Parameters.self)
            _ = try? call.parameters(as: Contract.Call.Parameters.self)
            accepted += 1
          }
        }
      } catch { refused += 1 }
    }
    #expect(accepted > 1000 && refused > 1000)
  }
}
