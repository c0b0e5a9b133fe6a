// A kernel input device through libevdev: non-blocking, not grabbed. A file that is not an input device is rejected before it is read.

import CEvdev
import Glibc

/// A gamepad or wheel.
protocol Controls: AnyObject {
  var name: String { get }
  /// Readable when there are events.
  var descriptor: Int32 { get }
  /// Whether all axes have been at rest once.
  var isArmed: Bool { get }
  /// The requested heading.
  var heading: Heading { get }
  /// Processes pending events and returns button changes. Fails if the device is gone.
  func read() throws(Failure) -> [GamepadMapping.Press]
}

final class InputDevice: Controls {
  static let directory = "/dev/input"

  let descriptor: Int32
  let name: String
  private var mapping: GamepadMapping
  private let device: OpaquePointer
  /// Whether libevdev is delivering the changes that were lost when the kernel's event queue overflowed.
  private var isCatchingUp = false

  /// Opens the device at a path.
  init(path: String) throws(Failure) {
    let opened = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)
    guard opened >= 0 else { throw Self.cannotOpen(path, errno) }
    var isOwned = false
    defer { if !isOwned { close(opened) } }
    var state = stat()
    var raw: OpaquePointer?
    guard fstat(opened, &state) == 0, state.st_mode & S_IFMT == S_IFCHR, libevdev_new_from_fd(opened, &raw) == 0, let device = raw else {
      throw .other("\(path) is not an input device; use one in \(Self.directory), as in --input \(Self.directory)/event5")
    }
    name = libevdev_get_name(device).map { Output.oneLine(String(cString: $0)) } ?? path
    guard var mapping = GamepadMapping(axes: Self.axes(of: device), keys: Self.keys(of: device)) else {
      let message = "cannot drive with \(path) (\(name)): no stick, and no wheel with pedals; use another device with --input"
      libevdev_free(device)
      throw .other(message)
    }
    for code in mapping.codes {
      mapping.setAxis(code, to: Int(libevdev_get_event_value(device, UInt32(EV_ABS), UInt32(code))))
    }
    self.mapping = mapping
    self.device = device
    descriptor = opened
    isOwned = true
  }

  deinit {
    libevdev_free(device)
    close(descriptor)
  }

  /// The first device suitable for driving.
  static func first(in directory: String = directory) throws(Failure) -> InputDevice {
    var refused: Failure?
    for name in names(in: directory) {
      do throws(Failure) { return try InputDevice(path: "\(directory)/\(name)") } catch {
        if case .noAccessToInput = error { refused = refused ?? error }  // a later device may be a gamepad
      }
    }
    throw refused ?? .other("no gamepad in \(directory); plug one in, or use --input \(directory)/event5")
  }

  /// The file names of the input devices in numeric order: `event0`, `event1` … `event10`.
  static func names(in directory: String) -> [String] {
    guard let open = opendir(directory) else { return [] }
    defer { closedir(open) }
    var numbers: [Int] = []
    while let entry = readdir(open) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name.hasPrefix("event"), let number = Int(name.dropFirst(5)) { numbers.append(number) }
    }
    return numbers.sorted().map { "event\($0)" }
  }

  /// The failure for an error of open(2).
  static func cannotOpen(_ path: String, _ error: Int32) -> Failure {
    switch error {
    case EACCES, EPERM:
      .noAccessToInput(path: path)
    case ENOENT, ENOTDIR: .other("cannot open \(path): no such device; list devices: ls \(directory)")
    case ENODEV, ENXIO: .other("cannot open \(path): the device is unplugged")
    default: .other("cannot open \(path): \(String(cString: strerror(error)))")
    }
  }

  var isArmed: Bool { mapping.isArmed }
  var heading: Heading { mapping.heading }

  func read() throws(Failure) -> [GamepadMapping.Press] {
    var presses: [GamepadMapping.Press] = []
    var event = input_event()
    while true {
      let flag = isCatchingUp ? LIBEVDEV_READ_FLAG_SYNC : LIBEVDEV_READ_FLAG_NORMAL
      let result = libevdev_next_event(device, flag.rawValue, &event)
      switch result {
      case -EAGAIN where isCatchingUp: isCatchingUp = false
      case -EAGAIN, -EINTR: return presses
      case Int32(LIBEVDEV_READ_STATUS_SYNC.rawValue) where !isCatchingUp: isCatchingUp = true
      case 0...: if let press = process(event) { presses.append(press) }
      default: throw .other("lost \(name): \(String(cString: strerror(-result))); plug it in and start again")
      }
    }
  }

  /// Applies an event. Returns the button change that it means, if any.
  private func process(_ event: input_event) -> GamepadMapping.Press? {
    switch Int32(event.type) {
    case EV_ABS: mapping.setAxis(Int(event.code), to: Int(event.value))
    case EV_KEY where event.value == 1: return mapping.pressed(Int(event.code))
    case EV_KEY where event.value == 0: return mapping.released(Int(event.code))
    default: break
    }
    return nil
  }

  private static func axes(of device: OpaquePointer) -> [Int: ClosedRange<Int>] {
    var axes: [Int: ClosedRange<Int>] = [:]
    for code in [ABS_X, ABS_Y, ABS_Z, ABS_RZ, ABS_WHEEL, ABS_GAS, ABS_BRAKE] {
      guard let info = libevdev_get_abs_info(device, UInt32(code))?.pointee, info.minimum <= info.maximum else { continue }
      axes[Int(code)] = Int(info.minimum)...Int(info.maximum)
    }
    return axes
  }

  private static func keys(of device: OpaquePointer) -> Swift.Set<Int> {
    Swift.Set([BTN_SOUTH, BTN_JOYSTICK].filter { libevdev_has_event_code(device, UInt32(EV_KEY), UInt32($0)) == 1 }.map { Int($0) })
  }
}
