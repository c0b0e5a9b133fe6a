// A kernel input device, read with libevdev without blocking and without an exclusive grab. Rejects files that are not input devices.

import CEvdev
import Glibc

final class EventDevice {
  static let directory = "/dev/input"

  let descriptor: Int32
  let name: String
  private let device: OpaquePointer
  /// Whether libevdev is resynchronising: delivering the changes that were lost when the kernel's event queue overflowed.
  private var isCatchingUp = false

  /// Opens the device at a path.
  init(path: String) throws(Failure) {
    let opened = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)
    guard opened >= 0 else { throw Self.cannotOpen(path, errno) }
    var state = stat()
    var raw: OpaquePointer?
    guard fstat(opened, &state) == 0, state.st_mode & S_IFMT == S_IFCHR, libevdev_new_from_fd(opened, &raw) == 0, let device = raw else {
      close(opened)
      throw .other("\(path) is not an input device; use one in \(Self.directory), as in --input \(Self.directory)/event5")
    }
    name = libevdev_get_name(device).map { Output.oneLine(String(cString: $0)) } ?? path
    self.device = device
    descriptor = opened
  }

  deinit {
    libevdev_free(device)
    close(descriptor)
  }

  /// Whether the device has this key or button.
  func has(key: Int32) -> Bool { libevdev_has_event_code(device, UInt32(EV_KEY), UInt32(key)) == 1 }

  /// The range of an axis; nil if the device has no such axis.
  func range(ofAxis axis: Int32) -> ClosedRange<Int>? {
    guard let info = libevdev_get_abs_info(device, UInt32(axis))?.pointee, info.minimum <= info.maximum else { return nil }
    return Int(info.minimum)...Int(info.maximum)
  }

  /// The position of an axis, according to the events read so far.
  func position(ofAxis axis: Int32) -> Int { Int(libevdev_get_event_value(device, UInt32(EV_ABS), UInt32(axis))) }

  /// Whether a key is down, according to the events read so far.
  func isDown(key: Int32) -> Bool { libevdev_get_event_value(device, UInt32(EV_KEY), UInt32(key)) != 0 }

  /// Reads pending events. Throws if the device was unplugged.
  func read(_ each: (_ type: Int32, _ code: Int, _ value: Int) -> Void) throws(Failure) {
    var event = input_event()
    while true {
      let flag = isCatchingUp ? LIBEVDEV_READ_FLAG_SYNC : LIBEVDEV_READ_FLAG_NORMAL
      let result = libevdev_next_event(device, flag.rawValue, &event)
      switch result {
      case -EAGAIN where isCatchingUp: isCatchingUp = false
      case -EAGAIN, -EINTR: return
      case Int32(LIBEVDEV_READ_STATUS_SYNC.rawValue) where !isCatchingUp: isCatchingUp = true
      case 0...: each(Int32(event.type), Int(event.code), Int(event.value))
      default: throw .other("lost \(name): \(String(cString: strerror(-result))); plug it in and start again")
      }
    }
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
}
