import Testing

@testable import Protocols

/// The stored settings of a car, with and without a link.
@Suite struct CarSettingsTests {
  @Test func `settings can be changed without a link, and survive a restart`() {
    var rig = CarRig()
    rig.give(.started(restored: [:], wall: WallTime(microseconds: 0)))
    #expect(rig.number("sensitivity") == 1 && rig.number("neutral-roll") == 0 && rig.text("video-quality") == "medium")
    let ids = [
      rig.set("sensitivity", .float(1.33)), rig.set("neutral-roll", .float(0.1)), rig.set("neutral-pitch", .float(-0.25)),
      rig.set("neutral-yaw", .float(3.1416)), rig.set("video-quality", .string("high")),
      rig.set("web-page", .string("https://maps.example/?q=a")),
    ]
    #expect(ids.allSatisfy { rig.isDone($0) })
    #expect(rig.disk["neutral"] == Array("0.100000 -0.250000 3.141600".utf8) && rig.disk["sensitivity"] == Array("1.33".utf8))
    var next = CarRig()
    next.give(.started(restored: rig.disk, wall: WallTime(microseconds: 0)))
    for name in ["sensitivity", "neutral-roll", "neutral-pitch", "neutral-yaw", "video-quality", "web-page"] {
      #expect(next.text(name) == rig.text(name) && next.text(name) != nil, "\(name)")
    }
    #expect(next.text("web-page") == "https://maps.example/?q=a" && next.number("neutral-yaw") == 3.1416)
  }

  @Test func `a command completes once its setting is stored`() {
    var rig = CarRig.ready()
    rig.diskIsQuick = false
    let first = rig.set("neutral-roll", .float(0.1))
    let second = rig.set("neutral-pitch", .float(0.2))
    #expect(rig.results.isEmpty && rig.number("neutral-roll") == 0)
    rig.give(.stored(key: "neutral", failure: nil))
    #expect(rig.isDone(first) && rig.results[second] == nil && rig.number("neutral-roll") == 0.1 && rig.number("neutral-pitch") == 0)
    rig.give(.stored(key: "neutral", failure: "no space left on the device"))
    #expect(rig.refusal(second) == "no space left on the device" && rig.number("neutral-pitch") == 0)
    rig.give(.stored(key: "neutral", failure: nil))
    let flood = (0..<40).map { _ in rig.set("sensitivity", .float(1)) }
    #expect(flood.suffix(8).allSatisfy { rig.code($0) == "busy" } && rig.results[flood[0]] == nil)
  }

  @Test func `a damaged setting counts as not set`() {
    for junk in ["", "x", "9", "nan", "0.5 0.5", "0 0 0 0", "9 9 9", "javascript:alert(1)", String(repeating: "h", count: 5000)] {
      let bytes = Array(junk.utf8)
      var rig = CarRig()
      let kept = ["sensitivity": bytes, "neutral": bytes, "web-page": bytes, "video-quality": bytes]
      rig.give(.started(restored: kept, wall: WallTime(microseconds: 0)))
      #expect(rig.number("sensitivity") == 1 && rig.number("neutral-roll") == 0 && rig.text("video-quality") == "medium", "\(junk)")
      #expect(rig.text("web-page") == "http://car.local:12346/")
    }
  }

  @Test func `damaged settings are reported once`() {
    var rig = CarRig()
    let stored = ["sensitivity": "0.75", "neutral": "x", "web-page": "ftp://x/"].mapValues { Array($0.utf8) }
    rig.give(.started(restored: stored, wall: WallTime(microseconds: 0)))
    #expect(rig.events == ["stored settings are corrupt and were discarded: web-page, neutral; set them again"])
    #expect(rig.number("sensitivity") == 0.75)
    var healthy = CarRig()
    healthy.give(.started(restored: ["sensitivity": Array("0.75".utf8)], wall: WallTime(microseconds: 0)))
    #expect(healthy.events.isEmpty)
  }

  @Test func `the web page is any HTTP URL, and empty restores the car's own page`() {
    var rig = CarRig.ready()
    let good = rig.set("web-page", .string("HTTP://example/"))
    #expect(rig.isDone(good) && rig.text("web-page") == "HTTP://example/")
    for page in [
      "ftp://x/", "http://", "https://", "http://a b/", "http://ü/", "http://a\n/", "x", "http://" + String(repeating: "x", count: 2000),
    ] {
      let id = rig.set("web-page", .string(page))
      guard case .invalid? = rig.error(id) else {
        Issue.record("\(page.prefix(30)) was accepted")
        continue
      }
    }
    let own = rig.set("web-page", .string(""))
    #expect(rig.isDone(own) && rig.text("web-page") == "http://car.local:12346/" && rig.disk["web-page"] == nil)
  }

  @Test func `neutral here stores the current attitude of the driver`() {
    var rig = CarRig.ready()
    let early = rig.act(.neutral, ["position": .string("here")])
    #expect(rig.code(early) == "no-tilt")
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    rig.drive(0.3, -0.1, for: .second)
    let here = rig.act(.neutral, ["position": .string("here")])
    rig.drive(0.3, -0.1, for: 100 * .millisecond)
    #expect(rig.isDone(here) && rig.number("neutral-roll") == 0.3 && rig.number("neutral-pitch") == -0.1)
    #expect(rig.tilts.last == " 0.000000; 0.000000; 0.000000")
    let jump = rig.set("sensitivity", .float(0.67))
    let horizontal = rig.act(.neutral, ["position": .string("horizontal")])
    #expect(rig.code(jump) == "driving" && rig.code(horizontal) == "driving")
    _ = rig.act(.stop)
    _ = rig.set("sensitivity", .float(0.67))
    _ = rig.act(.proceed)
    rig.drive(0.5, 0.1, for: 300 * .millisecond)
    rig.drive(0.5, 0.1, for: 100 * .millisecond)
    #expect(rig.tilts.last == " 0.134000; 0.134000; 0.000000")
    _ = rig.act(.stop)
    let level = rig.act(.neutral, ["position": .string("horizontal")])
    #expect(rig.isDone(level) && rig.number("neutral-roll") == 0)
    let wrong = rig.act(.neutral, ["position": .string("upside-down")])
    #expect(rig.refusal(wrong) == "must be here or horizontal, not upside-down")
  }

  @Test func `settings out of range are rejected`() {
    var rig = CarRig.ready()
    for (name, value) in [
      ("sensitivity", Value.float(2)), ("sensitivity", .float(.nan)), ("neutral-pitch", .float(2)), ("web-page", .int(1)),
    ] {
      let id = rig.set(name, value)
      guard case .invalid? = rig.error(id) else {
        Issue.record("\(name) \(value.text)")
        continue
      }
    }
    let readOnly = rig.set("roll", .float(1))
    #expect(rig.code(readOnly) == "read-only")
  }
}
