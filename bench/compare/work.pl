# SPDX-License-Identifier: Apache-2.0
# work.pl AMOUNT: what Perl programs do all day, for bench/process: hashes, strings, regular expressions, sorting,
# methods, arithmetic, parsing. Prints one line for each, always the same for the same AMOUNT.
use strict;
use warnings;

my $amount = shift;
my $state = 1;

sub random {
  $state = ($state * 1103515245 + 12345) % 2147483648;
  return ($state >> 16) % $_[0];
}

# Planets: floating point and fields of hashes.
sub orbit {
  my ($steps) = @_;
  my @bodies = map {
    {x => $_ * 1.5, y => $_ % 3 * 0.7, vx => 0, vy => 0.4 / $_, mass => $_ == 1 ? 39.5 : 0.01 * $_}
  } 1 .. 5;
  for (1 .. $steps) {
    for my $i (0 .. $#bodies) {
      my $one = $bodies[$i];
      for my $other (@bodies[$i + 1 .. $#bodies]) {
        my ($dx, $dy) = ($one->{x} - $other->{x}, $one->{y} - $other->{y});
        my $square = $dx * $dx + $dy * $dy + 0.01;
        my $force = 0.001 / ($square * sqrt $square);
        $one->{vx} -= $dx * $other->{mass} * $force;
        $one->{vy} -= $dy * $other->{mass} * $force;
        $other->{vx} += $dx * $one->{mass} * $force;
        $other->{vy} += $dy * $one->{mass} * $force;
      }
    }
    for my $body (@bodies) {
      $body->{x} += 0.001 * $body->{vx};
      $body->{y} += 0.001 * $body->{vy};
    }
  }
  return sprintf "%.9f %.9f", $bodies[1]{x}, $bodies[2]{y};
}

# Words: building strings, splitting them, counting in a hash, sorting with a block.
sub words {
  my ($count) = @_;
  my $text = "";
  my %counts;
  $text .= "item" . random(3000) . " " . chr(97 + random(26)) x (random(4) + 1) . "\n" for 1 .. $count;
  for my $line (split /\n/, $text) {
    $counts{$_}++ for split ' ', $line;
  }
  my @order = sort { $counts{$b} <=> $counts{$a} || $a cmp $b } keys %counts;
  return scalar(@order) . " $order[0] $counts{$order[0]}";
}

# Lines of a log: regular expressions with groups and alternatives, and replacing.
sub lines {
  my ($count) = @_;
  my ($seen, $size, $length) = (0, 0, 0);
  for my $i (1 .. $count) {
    my $line = sprintf "10.0.%d.%d - [%02d:%02d] \"%s /page/%d.html\" %d %d", random(256), random(256), random(24),
      random(60), (qw(GET POST PUT HEAD))[random(4)], random(500), (200, 304, 404)[random(3)], random(90000);
    if ($line =~ /^(\d+\.\d+\.\d+\.\d+) \S+ \[(\d+):(\d+)\] "(?:GET|POST) ([^"]+)" (200|404) (\d+)$/) {
      $seen++;
      $size += $6;
    }
    $line =~ s/(\d+)/<$1>/g;
    $line =~ tr/a-z/A-Z/;
    $length += length $line;
  }
  return "$seen $size $length";
}

package Square;
sub new { my ($class, $side) = @_; return bless {side => $side}, $class }
sub area { my ($self) = @_; return $self->{side} * $self->{side} }

package Circle;
our @ISA = ('Square');
sub area { my ($self) = @_; return 3 * $self->SUPER::area() }

package Pair;
sub new { my ($class, @both) = @_; return bless {both => \@both}, $class }
sub area { my ($self) = @_; return ($self->{both}[0]->area() + $self->{both}[1]->area()) % 1000003 }

package main;

# Shapes: methods of objects of several classes.
sub dispatch {
  my ($count) = @_;
  my (@shapes, $total);
  for my $i (0 .. 199) {
    my $kind = random($i < 10 ? 2 : 3);
    push @shapes, $kind == 2
      ? Pair->new($shapes[random($i)], $shapes[random($i)])
      : ('Square', 'Circle')[$kind]->new(random(9));
  }
  $total = (($total // 0) + $shapes[$_ % 200]->area()) % 1000003 for 1 .. $count;
  return $total;
}

# Sums in brackets: a parser by recursive descent with a regular expression for each token.
my $sums;

sub value {
  return $1 if $sums =~ /\G(\d+)/gc;
  $sums =~ /\G\(/gc;
  my $inside = sum();
  $sums =~ /\G\)/gc;
  return $inside;
}

sub product {
  my $result = value();
  $result *= value() while $sums =~ /\G\*/gc;
  return $result;
}

sub sum {
  my $result = product();
  while ($sums =~ /\G([-+])/gc) {
    my $sign = $1;
    my $next = product();
    $result = $sign eq '+' ? $result + $next : $result - $next;
  }
  return $result;
}

sub parse {
  my ($count) = @_;
  my @parts = map { '(' . random(100) . '*' . random(10) . '-(' . random(50) . '+' . random(7) . '))' } 1 .. $count;
  $sums = join '+', @parts;
  return sum();
}

print "orbit ", orbit(12 * $amount), "\n";
print "words ", words(120 * $amount), "\n";
print "lines ", lines(50 * $amount), "\n";
print "dispatch ", dispatch(120 * $amount), "\n";
print "parse ", parse(50 * $amount), "\n";
