// The mapping of axes and buttons, and descriptors that are not input devices.

import CEvdev
import CLinux
import Glibc
import Testing

@testable import vehiclectl

@Suite struct GamepadTests {
  static func codes(_ codes: Int32...) -> [Int] { codes.map { Int($0) } }
  static let stick = Dictionary(uniqueKeysWithValues: codes(ABS_X, ABS_Y, ABS_Z, ABS_RZ).map { ($0, -32768...32767) })

  func pad(_ axes: [Int: ClosedRange<Int>] = stick) throws -> GamepadMapping {
    var mapping = try #require(GamepadMapping(axes: axes, keys: Swift.Set(Self.codes(BTN_SOUTH))))
    for code in mapping.codes { mapping.setAxis(code, to: (axes[code].map { $0.lowerBound + $0.upperBound } ?? 0) / 2) }
    return mapping
  }

  @Test func `a stick drives and steers by its range beyond the dead zone`() throws {
    var mapping = try pad()
    #expect(mapping.isArmed && mapping.deflection == Deflection())
    mapping.setAxis(Int(ABS_Y), to: -32768)
    mapping.setAxis(Int(ABS_X), to: 32767)
    #expect(mapping.deflection == Deflection(forward: 1, turn: 1))
    mapping.setAxis(Int(ABS_Y), to: 2500)
    mapping.setAxis(Int(ABS_X), to: -2500)
    #expect(mapping.deflection == Deflection(), "7.6 % is nothing")
    mapping.setAxis(Int(ABS_Y), to: 17694)
    #expect(abs(mapping.deflection.forward + 0.5) < 0.001)
    mapping.setAxis(Int(ABS_Y), to: Int(Int32.max))
    #expect(mapping.deflection.forward == -1, "no further than its range")
    mapping.setAxis(Int(ABS_Z), to: 32767)
    #expect(mapping.deflection.turn == 0, "a trigger drives nothing")
    var coarse = try pad([Int(ABS_X): 0...255, Int(ABS_Y): 0...255])
    coarse.setAxis(Int(ABS_X), to: 0)
    #expect(coarse.deflection == Deflection(forward: 0, turn: -1))
  }

  @Test func `a stick that is held at the start has no effect until it is released`() throws {
    var mapping = try #require(GamepadMapping(axes: Self.stick, keys: Swift.Set(Self.codes(BTN_SOUTH))))
    mapping.setAxis(Int(ABS_X), to: 0)
    mapping.setAxis(Int(ABS_Y), to: -32768)
    #expect(!mapping.isArmed && mapping.deflection == Deflection())
    mapping.setAxis(Int(ABS_Y), to: -20000)
    #expect(mapping.deflection == Deflection())
    mapping.setAxis(Int(ABS_Y), to: 0)
    mapping.setAxis(Int(ABS_Y), to: -32768)
    #expect(mapping.isArmed && mapping.deflection == Deflection(forward: 1))
  }

  @Test func `a wheel steers, its pedals drive forward and backward`() throws {
    let axes = [Int(ABS_WHEEL): 0...1000, Int(ABS_GAS): 0...255, Int(ABS_BRAKE): 0...255]
    var mapping = try #require(GamepadMapping(axes: axes, keys: []))
    for (code, value) in [(ABS_WHEEL, 500), (ABS_GAS, 0), (ABS_BRAKE, 0)] { mapping.setAxis(Int(code), to: value) }
    #expect(mapping.isArmed && mapping.deflection == Deflection())
    mapping.setAxis(Int(ABS_GAS), to: 255)
    mapping.setAxis(Int(ABS_WHEEL), to: 0)
    #expect(mapping.deflection == Deflection(forward: 1, turn: -1))
    mapping.setAxis(Int(ABS_GAS), to: 0)
    mapping.setAxis(Int(ABS_BRAKE), to: 255)
    #expect(mapping.deflection == Deflection(forward: -1, turn: -1))
  }

  @Test func `inverted pedals rest at their other end`() throws {
    let axes = [Int(ABS_X): 0...65535, Int(ABS_Y): 0...255, Int(ABS_Z): 0...255, Int(ABS_RZ): 0...255]
    var mapping = try #require(GamepadMapping(axes: axes, keys: Swift.Set(Self.codes(BTN_JOYSTICK))))
    for (code, value) in [(ABS_X, 32767), (ABS_Z, 0), (ABS_RZ, 255)] { mapping.setAxis(Int(code), to: value) }
    #expect(!mapping.isArmed && mapping.deflection == Deflection(), "the accelerator is down, or the other way round: which is unknown")
    mapping.setAxis(Int(ABS_Z), to: 255)
    mapping.setAxis(Int(ABS_Z), to: 0)
    #expect(mapping.isArmed && mapping.deflection == Deflection(forward: 1))
  }

  @Test func `a device without stick and wheel is not suitable`() {
    #expect(GamepadMapping(axes: [:], keys: Swift.Set(Self.codes(BTN_SOUTH))) == nil)
    #expect(GamepadMapping(axes: Self.stick, keys: []) == nil, "a gamepad's motion sensor")
    #expect(
      GamepadMapping(axes: [Int(ABS_X): 5...5, Int(ABS_Y): 0...9], keys: Swift.Set(Self.codes(BTN_SOUTH))) == nil, "no steering range")
    #expect(GamepadMapping(axes: [Int(ABS_X): 0...9, Int(ABS_Y): 0...9], keys: Swift.Set(Self.codes(BTN_TOUCH))) == nil)
  }

  @Test func `buttons continue, stop and quit`() throws {
    let mapping = try pad()
    #expect([BTN_SOUTH, BTN_EAST, BTN_START, BTN_TRIGGER, BTN_THUMB].map { mapping.pressed(Int($0)) } == [.go, .stop, .end, .go, .stop])
    #expect([BTN_TL, BTN_TR].map { mapping.pressed(Int($0)) } == [.button(.left, isDown: true), .button(.right, isDown: true)])
    #expect([BTN_TL, BTN_TR].map { mapping.released(Int($0)) } == [.button(.left, isDown: false), .button(.right, isDown: false)])
    #expect(mapping.released(Int(BTN_SOUTH)) == nil, "only the buttons of the screen are held")
    #expect(mapping.pressed(Int(BTN_WEST)) == nil && mapping.pressed(-1) == nil)
  }

  func failure(_ body: () throws -> Void) -> Failure? {
    do { try body() } catch { return error as? Failure }
    return nil
  }

  @Test func `other files are rejected without blocking`() throws {
    let directory = "/tmp/vehiclectl-input-\(getpid())-\(UInt64.random(in: 0 ... .max))"
    #expect(mkdir(directory, 0o700) == 0)
    defer {
      for name in ["event2", "event10", "event1x", "mouse0"] { unlink("\(directory)/\(name)") }
      rmdir(directory)
    }
    #expect(failure { _ = try Gamepad.first(in: directory) }?.message.hasPrefix("no gamepad in \(directory); plug one in") == true)
    #expect(mkfifo("\(directory)/event10", 0o600) == 0)
    for name in ["event2", "event1x", "mouse0"] { close(open("\(directory)/\(name)", O_CREAT | O_WRONLY, 0o600)) }
    #expect(EventDevice.names(in: directory) == ["event2", "event10"])
    for path in ["\(directory)/event10", "\(directory)/event2", directory, "/dev/null"] {
      let refused = failure { _ = try Gamepad(path: path) }
      #expect(refused?.exitCode == 1 && refused?.message.hasPrefix("\(path) is not an input device; use one in") == true, "\(path)")
    }
    #expect(failure { _ = try Gamepad.first(in: directory) }?.message.hasPrefix("no gamepad in") == true)
    #expect(failure { _ = try Gamepad(path: "\(directory)/event7") }?.message.hasPrefix("cannot open \(directory)/event7") == true)
    #expect(EventDevice.names(in: "/nonexistent").isEmpty)
    let denied = EventDevice.cannotOpen("/dev/input/event5", EACCES)
    #expect(denied.exitCode == 7 && denied.message.contains("add yourself to group input"))
    #expect(EventDevice.cannotOpen("/dev/input/event5", ENODEV).message == "cannot open /dev/input/event5: the device is unplugged")
  }
}
