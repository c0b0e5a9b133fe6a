// Link URLs: parsing, formatting, and the offsets of errors.

import Testing

@testable import Peers
@testable import vehicled

@Suite struct LinkURLTests {
  @Test(arguments: [
    ("serial:/dev/ttyUSB0", LinkURL.serial(path: "/dev/ttyUSB0", baud: nil)),
    ("serial:/dev/ttyUSB0?baud=115200", .serial(path: "/dev/ttyUSB0", baud: 115200)),
    ("serial:/dev/ttyUSB0?baud=38400", .serial(path: "/dev/ttyUSB0", baud: 38400)),
    ("serial:/dev/a%20b%3F%25c", .serial(path: "/dev/a b?%c", baud: nil)),
    ("tcp:192.168.0.10:35000", .tcp(host: "192.168.0.10", port: 35000)),
    ("tcp:[::1]:1", .tcp(host: "::1", port: 1)),
    ("tcp:[fe80::1%25eth0]:35000", .tcp(host: "fe80::1%eth0", port: 35000)),
    ("tcp:car-park.local:65535", .tcp(host: "car-park.local", port: 65535)),
    ("replay:/var/tmp/r%C3%A9.ndjson?speed=2.5", .replay(path: "/var/tmp/ré.ndjson", speed: 2.5)),
    ("replay:/ride", .replay(path: "/ride", speed: 1)),
    ("slcan:serial:/dev/ttyACM0", .slcan(over: .serial(path: "/dev/ttyACM0", baud: 115_200))),
    ("slcan:serial:/dev/ttyUSB0?baud=1000000", .slcan(over: .serial(path: "/dev/ttyUSB0", baud: 1_000_000))),
    ("slcan:tcp:192.168.80.1:3333", .slcan(over: .tcp(host: "192.168.80.1", port: 3333))),
    ("slcan:replay:/ride?speed=10", .slcan(over: .replay(path: "/ride", speed: 10))),
    ("can:can0", .can(interface: "can0")),
    ("ble:Veepeak", .ble(BLETarget(match: .name("Veepeak")))),
    ("ble:aa:bb:cc:00:11:22", .ble(BLETarget(match: .address("AA:BB:CC:00:11:22")))),
    ("ble:IOS-Vlink*?adapter=hci1", .ble(BLETarget(match: .prefix("IOS-Vlink"), adapter: "hci1"))),
    ("ble:*peak*", .ble(BLETarget(match: .part("peak")))),
    ("ble:auto?response=no", .ble(BLETarget(match: .auto, response: false))),
    ("ble:My%20Car%3F?response=yes", .ble(BLETarget(match: .name("My Car?"), response: true))),
    (
      "ble:x?service=fff0&notify=FFF1&write=0000fff2-0000-1000-8000-00805f9b34fb",
      .ble(BLETarget(match: .name("x"), service: "FFF0", notify: "FFF1", write: "FFF2"))
    ),
    (
      "ble:x?service=6E400001-B5A3-F393-E0A9-E50E24DCCA9E",
      .ble(BLETarget(match: .name("x"), service: "6e400001-b5a3-f393-e0a9-e50e24dcca9e"))
    ),
  ])
  func `a URL round-trips through parsing and formatting`(text: String, link: LinkURL) throws {
    #expect(try LinkURL(text) == link)
    #expect(try LinkURL(link.description) == link)
  }

  @Test func `the description is canonical`() throws {
    #expect(try LinkURL("serial:/dev/%74ty?baud=038400").description == "serial:/dev/tty?baud=38400")
    #expect(try LinkURL("replay:/a?speed=010.0").description == "replay:/a?speed=10")
    #expect(try LinkURL("tcp:[fe80::1%25eth0]:35000").description == "tcp:[fe80::1%25eth0]:35000")
  }

  @Test(arguments: [
    ("", 0, "unknown link scheme"),
    ("/dev/ttyUSB0", 0, "write serial:/dev/ttyUSB0"),
    ("192.168.0.10:35000", 0, "write tcp:192.168.0.10:35000"),
    ("serail:/dev/ttyUSB0", 0, "did you mean serial:?"),
    ("carrier-pigeon:home", 0, "serial:/PATH[?baud=N], tcp:HOST:PORT, ble:NAME"),
    ("can:", 4, "is not the name of an interface; write can:INTERFACE"),
    ("can:an-interface-with-a-long-name", 4, "is not the name of an interface"), ("can:a/b", 4, "is not the name"),
    ("can:can0?bitrate=1", 9, "can: links have no keys"),
    ("slcan:", 6, "unknown link scheme"),
    ("slcan:/dev/ttyACM0", 6, "write serial:/dev/ttyACM0"),
    ("slcan:tcp:host", 10, "write tcp:HOST:PORT"),
    ("slcan:tcp:host:99999", 15, "not a port"),
    ("slcan:ble:x", 6, "write slcan:serial:/PATH[?baud=N] or slcan:tcp:HOST:PORT"),
    ("slcan:slcan:tcp:a:1", 6, "write slcan:serial:/PATH"),
    ("slcan:tcp:a:1?baud=9600", 14, "unknown key"),
    ("serial:", 7, "write serial:/PATH[?baud=N]"),
    ("serial:dev/ttyUSB0", 7, "not absolute"),
    ("serial:/dev/a?bawd=9600", 14, "unknown key \"bawd\" in the link; known keys: baud"),
    ("serial:/dev/a?baud=9600&baud=9600", 24, "set twice"),
    ("serial:/dev/a?baud=49", 19, "from 50 to 4000000"),
    ("serial:/dev/a?baud", 18, "from 50 to 4000000"),
    ("serial:/dev/a?baud=99999999999999999999", 19, "from 50 to 4000000"),
    ("serial:/dev/%4", 12, "two hex digits"),
    ("serial:/dev/%+4", 12, "two hex digits"),
    ("serial:/dev/%00", 12, "control character"),
    ("serial:/dev/\n", 12, "control character"),
    ("serial:/dev/%ff", 7, "not UTF-8"),
    ("tcp:host", 4, "HOST or PORT is missing"),
    ("tcp::1", 4, "HOST or PORT is missing"),
    ("tcp:host:0", 9, "1 to 65535"),
    ("tcp:host:65536", 9, "1 to 65535"),
    ("tcp:host:-1", 9, "1 to 65535"),
    ("tcp:host:1?nodelay=1", 11, "tcp: links have no keys"),
    ("tcp://host:1", 4, "unexpected //"),
    ("tcp:::1:35000", 4, "needs brackets"),
    ("tcp:[::1]", 4, "HOST or PORT is missing"),
    ("tcp:[::x]:1", 5, "not an IPv6 address"),
    ("tcp:[::1:1", 5, "not an IPv6 address"),
    ("tcp:[fe80::1%25]:1", 5, "not an IPv6 address"),
    ("tcp:my host:1", 6, "is not a host"),
    ("ble:", 4, "the name is missing"),
    ("ble:**", 4, "every peripheral"), ("ble:*peak", 4, "write ble:*peak*"),
    ("ble:x?adapter=eth0", 14, "not a Bluetooth adapter"),
    ("ble:x?service=FFF", 14, "not a UUID"),
    ("ble:x?service=0000fff0-0000-1000-8000-00805f9b34f", 14, "not a UUID"),
    ("ble:x?notify=FFF1", 13, "requires write="),
    ("ble:x?response=maybe", 15, "use yes or no"),
    ("ble:x?power=1", 6, "unknown key \"power\""),
    ("replay:/a?speed=0", 16, "from 0.001"),
    ("replay:/a?speed=nan", 16, "from 0.001"),
    ("replay:/a?speed=inf", 16, "from 0.001"),
  ])
  func `an invalid URL is rejected with the offset of the error`(text: String, offset: Int, message: String) {
    let error = #expect(throws: LinkURLError.self) { try LinkURL(text) }
    #expect(error?.offset == offset)
    #expect(error?.description.contains(message) == true, "\(error?.description ?? "")")
  }

  @Test func `random bytes do not trap the parser, and every parsed URL round-trips`() {
    var random = SeededRandom(seed: 7)
    let seeds = ["serial:/dev/ttyUSB0?baud=9600", "tcp:[fe80::1%25eth0]:35000", "replay:/a%C3%A9?speed=2"].map { Array($0.utf8) }
    for round in 0..<20_000 {
      var bytes = seeds[round % seeds.count]
      for _ in 0...Int.random(in: 0..<4, using: &random) { bytes.mutate(using: &random) }
      let text = String(decoding: bytes, as: UTF8.self)
      guard let link = try? LinkURL(text) else { continue }
      #expect((try? LinkURL(link.description)) == link, "\(text)")
    }
  }
}
